//! Trained models from C. `include/dss.h` describes every function.
//!
//! No panic crosses the boundary: it becomes an error. Pointers are checked for null; the caller is responsible for
//! everything else about them.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dss_format::encoder::Encoder;
use dss_format::feed::{Feed, SoundFeed};
use dss_infer::{Error, Input, InputKind, Model, OutputKind, State};

/// The call succeeded.
pub const OK: c_int = 0;
/// An argument is invalid.
pub const ERROR_ARGUMENT: c_int = 1;
/// The file is not a model.
pub const ERROR_FILE: c_int = 2;
/// The model cannot do this.
pub const ERROR_MODEL: c_int = 3;
/// The numbers left the range of f32.
pub const ERROR_OVERFLOW: c_int = 4;
/// A bug in this library.
pub const ERROR_PANIC: c_int = 5;

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::new(CString::default());
}

/// A model and what C asks about it.
pub struct DssModel {
    model: Arc<Model>,
    labels: Vec<CString>,
    sound: Option<SoundFeed>,
}

/// A stream and the model it belongs to.
pub struct DssStream {
    model: Arc<Model>,
    state: State,
}

/// A code and a message.
struct Failure(c_int, String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Io { .. } | Error::File(_) => ERROR_FILE,
            Error::CannotStream(_) | Error::PastEnd { .. } => ERROR_MODEL,
            Error::Overflow => ERROR_OVERFLOW,
            _ => ERROR_ARGUMENT,
        };
        Self(code, error.to_string())
    }
}

fn argument(what: &str) -> Failure {
    Failure(ERROR_ARGUMENT, what.to_owned())
}

fn text(message: &str) -> CString {
    CString::new(message.replace('\0', " ")).unwrap_or_default()
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown")
}

/// Runs what must not panic, and keeps its message.
fn guarded(run: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(run));
    let Failure(code, message) = match result {
        Ok(Ok(())) => return OK,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let what = panic_text(&*panic);
            Failure(ERROR_PANIC, format!("a mistake in the library: {what}"))
        }
    };
    MESSAGE.with(|kept| *kept.borrow_mut() = text(&message));
    code
}

/// # Safety
/// `pointer` is null or points to `len` values that nobody writes to meanwhile.
unsafe fn slice<'a, T>(pointer: *const T, len: usize) -> Result<&'a [T], Failure> {
    match (len, pointer.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(argument("a pointer is null")),
        _ if len > isize::MAX as usize / size_of::<T>() => Err(argument("a length is too great")),
        // SAFETY: not null, and the caller promises the rest.
        _ => Ok(unsafe { std::slice::from_raw_parts(pointer, len) }),
    }
}

/// # Safety
/// `pointer` is null or points to `len` values that nobody else uses meanwhile.
unsafe fn slice_mut<'a, T>(pointer: *mut T, len: usize) -> Result<&'a mut [T], Failure> {
    match (len, pointer.is_null()) {
        (0, _) => Ok(&mut []),
        (_, true) => Err(argument("a pointer is null")),
        _ if len > isize::MAX as usize / size_of::<T>() => Err(argument("a length is too great")),
        // SAFETY: not null, and the caller promises the rest.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(pointer, len) }),
    }
}

/// # Safety
/// `pointer` is null or points to a living value.
unsafe fn reference<'a, T>(pointer: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| argument("a pointer is null"))
}

impl DssModel {
    fn new(model: Model) -> Self {
        let encoder = Encoder::from_extra(&model.meta().extra);
        let sound = match encoder.map(|encoder| encoder.feed()) {
            Ok(Ok(Feed::Sound(feed))) => Some(feed),
            _ => None,
        };
        let labels = model.labels().iter().map(|label| text(label)).collect();
        Self { model: Arc::new(model), labels, sound }
    }

    fn forward(&self, input: Input<'_>, out: &mut [f32]) -> Result<(), Failure> {
        let logits = self.model.forward(input)?;
        if logits.len() != out.len() {
            let (wanted, found) = (logits.len(), out.len());
            return Err(argument(&format!(
                "the answer has {wanted} numbers, but there is room for {found}"
            )));
        }
        out.copy_from_slice(&logits);
        Ok(())
    }
}

/// Positions times numbers of a position.
fn count(model: &Model, positions: usize) -> Result<usize, Failure> {
    match model.meta().io.input {
        InputKind::Values { channels } => positions.checked_mul(channels),
        InputKind::Tokens { .. } => None,
    }
    .ok_or_else(|| argument("this model takes token ids, or the length is too great"))
}

/// Gives a new value to C.
///
/// # Safety
/// `place` is null or can be written to.
unsafe fn give<T>(place: *mut *mut T, made: impl FnOnce() -> Result<T, Failure>) -> c_int {
    guarded(|| {
        if place.is_null() {
            return Err(argument("a pointer is null"));
        }
        // SAFETY: not null, and the caller promises that it can be written to.
        unsafe { *place = std::ptr::null_mut() };
        let made = Box::into_raw(Box::new(made()?));
        // SAFETY: as above.
        unsafe { *place = made };
        Ok(())
    })
}

/// See `dss.h`.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn dss_error() -> *const c_char {
    MESSAGE.with(|message| message.borrow().as_ptr())
}

/// See `dss.h`.
///
/// # Safety
/// `path` is null or a C string; `model` is null or can be written to.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dss_model_load(path: *const c_char, model: *mut *mut DssModel) -> c_int {
    let load = || {
        if path.is_null() {
            return Err(argument("a pointer is null"));
        }
        // SAFETY: not null, and the caller promises a C string.
        let path = unsafe { CStr::from_ptr(path) };
        let path = path.to_str().map_err(|_| argument("the path is not UTF-8"))?;
        Ok(DssModel::new(Model::load(path)?))
    };
    // SAFETY: the caller's promise.
    unsafe { give(model, load) }
}

/// See `dss.h`.
///
/// # Safety
/// `bytes` is null or points to `len` bytes; `model` is null or can be written to.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dss_model_from_bytes(
    bytes: *const u8,
    len: usize,
    model: *mut *mut DssModel,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe { give(model, || Ok(DssModel::new(Model::from_bytes(slice(bytes, len)?)?))) }
}

/// See `dss.h`.
///
/// # Safety
/// `model` is null, or came from here and was not freed.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dss_model_free(model: *mut DssModel) {
    if !model.is_null() {
        guarded(|| {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(model) });
            Ok(())
        });
    }
}

/// A property of a model; `T::default()` without one.
///
/// # Safety
/// `model` is null or a living model.
unsafe fn property<T: Default>(model: *const DssModel, get: impl FnOnce(&DssModel) -> T) -> T {
    // SAFETY: the caller's promise.
    unsafe { model.as_ref() }.map(get).unwrap_or_default()
}

macro_rules! property {
    ($name:ident -> $type:ty, $get:expr) => {
        /// See `dss.h`.
        ///
        /// # Safety
        /// `model` is null or a living model.
        // SAFETY: no other symbol of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(model: *const DssModel) -> $type {
            // SAFETY: the caller's promise.
            unsafe { property(model, $get) }
        }
    };
}

property!(dss_model_channels -> usize, |it| match it.model.meta().io.input {
    InputKind::Values { channels } => channels,
    InputKind::Tokens { .. } => 0,
});
property!(dss_model_vocabulary -> usize, |it| match it.model.meta().io.input {
    InputKind::Tokens { vocab } => vocab,
    InputKind::Values { .. } => 0,
});
property!(dss_model_length -> usize, |it| it.model.meta().io.len);
property!(dss_model_outputs -> usize, |it| it.model.outputs());
property!(dss_model_answers_every_position -> c_int, |it| {
    c_int::from(matches!(it.model.meta().io.output, OutputKind::Position { .. }))
});
property!(dss_model_rate -> f64, |it| it.sound.as_ref().map_or(0.0, |sound| sound.rate));

/// See `dss.h`.
///
/// # Safety
/// `model` is null or a living model.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dss_model_label(model: *const DssModel, output: usize) -> *const c_char {
    // SAFETY: the caller's promise.
    let label = unsafe { model.as_ref() }.and_then(|model| model.labels.get(output));
    label.map_or(std::ptr::null(), |label| label.as_ptr())
}

/// See `dss.h`.
///
/// # Safety
/// `model` is null or a living model; `samples` is null or points to `count` numbers that nobody else uses.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dss_model_scale(
    model: *const DssModel,
    samples: *mut f32,
    count: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (model, samples) = unsafe { (reference(model)?, slice_mut(samples, count)?) };
        let sound = model.sound.as_ref();
        let sound = sound.ok_or_else(|| {
            Failure(ERROR_MODEL, "this model does not read samples of sound".into())
        })?;
        samples.iter_mut().for_each(|x| *x = sound.value(*x));
        Ok(())
    })
}

/// See `dss.h`.
///
/// # Safety
/// `model` is null or a living model; the other pointers are null or point to as many numbers as they are said to.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dss_forward_values(
    model: *const DssModel,
    values: *const f32,
    positions: usize,
    out: *mut f32,
    out_len: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promises.
        unsafe {
            let model = reference(model)?;
            let values = slice(values, count(&model.model, positions)?)?;
            model.forward(Input::Values(values), slice_mut(out, out_len)?)
        }
    })
}

/// See `dss.h`.
///
/// # Safety
/// As [`dss_forward_values`].
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dss_forward_tokens(
    model: *const DssModel,
    tokens: *const u32,
    positions: usize,
    out: *mut f32,
    out_len: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promises.
        unsafe {
            let (model, tokens) = (reference(model)?, slice(tokens, positions)?);
            model.forward(Input::Tokens(tokens), slice_mut(out, out_len)?)
        }
    })
}

/// See `dss.h`.
///
/// # Safety
/// `model` is null or a living model; `stream` is null or can be written to.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dss_stream_new(
    model: *const DssModel,
    stream: *mut *mut DssStream,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe {
        give(stream, || {
            let model = reference(model)?.model.clone();
            let state = model.state()?;
            Ok(DssStream { model, state })
        })
    }
}

/// Takes input.
///
/// # Safety
/// `stream` is null or a living stream that nobody else uses; `out` is null or has room.
unsafe fn push<'a>(
    stream: *mut DssStream,
    input: impl FnOnce(&Model) -> Result<Input<'a>, Failure>,
    out: *mut f32,
    out_len: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (stream, out) = unsafe { (stream.as_mut(), slice_mut(out, out_len)?) };
        let stream = stream.ok_or_else(|| argument("a pointer is null"))?;
        let outputs = stream.model.outputs();
        if ![0, outputs].contains(&out.len()) {
            let room = out.len();
            return Err(argument(&format!(
                "the answer has {outputs} numbers, but there is room for {room}"
            )));
        }
        let input = input(&stream.model)?;
        Ok(stream.model.block_step(&mut stream.state, input, out)?)
    })
}

/// See `dss.h`.
///
/// # Safety
/// `stream` is null or a living stream that nobody else uses; the other pointers are null or point to as many numbers as
/// they are said to.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dss_stream_push_values(
    stream: *mut DssStream,
    values: *const f32,
    positions: usize,
    out: *mut f32,
    out_len: usize,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe {
        push(
            stream,
            |model| Ok(Input::Values(slice(values, count(model, positions)?)?)),
            out,
            out_len,
        )
    }
}

/// See `dss.h`.
///
/// # Safety
/// As [`dss_stream_push_values`].
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dss_stream_push_tokens(
    stream: *mut DssStream,
    tokens: *const u32,
    positions: usize,
    out: *mut f32,
    out_len: usize,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe { push(stream, |_| Ok(Input::Tokens(slice(tokens, positions)?)), out, out_len) }
}

/// See `dss.h`.
///
/// # Safety
/// `stream` is null or a living stream that nobody else uses.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dss_stream_reset(stream: *mut DssStream) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let stream = unsafe { stream.as_mut() }.ok_or_else(|| argument("a pointer is null"))?;
        stream.state.reset();
        Ok(())
    })
}

/// See `dss.h`.
///
/// # Safety
/// `stream` is null, or came from here and was not freed.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dss_stream_free(stream: *mut DssStream) {
    if !stream.is_null() {
        guarded(|| {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(stream) });
            Ok(())
        });
    }
}
