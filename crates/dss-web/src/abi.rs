//! The functions of the WebAssembly module.
//!
//! One buffer takes what comes in, another what goes out; both belong to this module. A call that can fail returns
//! [`OK`] or [`FAILED`], and then its error is in the output as UTF-8 text. A panic leaves its message there before
//! the module stops. Numbers in the buffers are f32 in little-endian order.

use std::cell::RefCell;

use dss_infer::generate::Sampling;

use crate::engine::{Engine, Result};
use crate::picture::Axis;

/// The call succeeded.
pub const OK: i32 = 0;
/// The call failed; the output says why.
pub const FAILED: i32 = -1;

thread_local! {
    static ENGINE: RefCell<Option<Engine>> = const { RefCell::new(None) };
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn leave(bytes: &[u8]) {
    OUTPUT.with_borrow_mut(|output| {
        output.clear();
        output.extend(bytes);
    });
}

fn leave_numbers(numbers: &[f32]) {
    OUTPUT.with_borrow_mut(|output| {
        output.clear();
        output.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
    });
}

fn answer(result: Result<()>) -> i32 {
    match result {
        Ok(()) => OK,
        Err(error) => {
            leave(error.as_bytes());
            FAILED
        }
    }
}

/// Runs with the loaded model.
fn with_engine(run: impl FnOnce(&mut Engine) -> Result<()>) -> i32 {
    ENGINE.with_borrow_mut(|engine| {
        answer(engine.as_mut().ok_or_else(|| "load a model first".into()).and_then(run))
    })
}

fn input_numbers() -> Vec<f32> {
    let number = |x: &[u8]| f32::from_le_bytes([x[0], x[1], x[2], x[3]]);
    INPUT.with_borrow(|input| input.chunks_exact(4).map(number).collect())
}

/// To be called once, before all others: panics leave their message in the output.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn dss_start() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        OUTPUT.with(|output| {
            if let Ok(mut output) = output.try_borrow_mut() {
                *output = text.into_bytes();
            }
        });
    }));
}

/// Makes the input `len` bytes long and says where it is; null if there is no memory for it.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn dss_input(len: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        if input.try_reserve_exact(len).is_err() {
            return std::ptr::null_mut();
        }
        input.resize(len, 0);
        input.as_mut_ptr()
    })
}

/// Where the output is.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn dss_output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// How many bytes it has.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn dss_output_len() -> usize {
    OUTPUT.with_borrow(|output| output.len())
}

/// Loads the model file in the input, for sound at `ratio` times the sampling interval that it was trained with. Leaves
/// its description as JSON. After an error the model before is still there.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn dss_load(ratio: f64) -> i32 {
    let file = INPUT.take();
    let loaded = Engine::load(&file, ratio).and_then(|engine| {
        leave(engine.describe()?.as_bytes());
        ENGINE.set(Some(engine));
        Ok(())
    });
    answer(loaded)
}

/// [`Engine::listen`].
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn dss_listen(window: usize, hop: usize) -> i32 {
    with_engine(|engine| engine.listen(window, hop))
}

/// [`Engine::push`] of the samples in the input; leaves the probabilities.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn dss_push() -> i32 {
    let samples = input_numbers();
    with_engine(|engine| {
        leave_numbers(engine.push(&samples)?);
        Ok(())
    })
}

/// [`Engine::begin`] with the prompt in the input; the seed comes in two halves.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn dss_begin(
    temperature: f64,
    top_k: usize,
    top_p: f64,
    seed_low: u32,
    seed_high: u32,
) -> i32 {
    let seed = u64::from(seed_high) << 32 | u64::from(seed_low);
    let prompt = INPUT.take();
    with_engine(|engine| {
        let prompt = std::str::from_utf8(&prompt).map_err(|e| format!("the prompt: {e}"))?;
        engine.begin(prompt, Sampling { temperature, top_k, top_p, seed })
    })
}

/// [`Engine::write`]; leaves the text. If the text ends early it is left without an error; the next call says why.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn dss_write(count: usize) -> i32 {
    with_engine(|engine| {
        let mut written = Vec::new();
        match engine.write(count, &mut written) {
            Err(error) if written.is_empty() => Err(error),
            _ => {
                leave(&written);
                Ok(())
            }
        }
    })
}

/// [`Engine::kernels`]; leaves the numbers.
// SAFETY: no other symbol of this name.
#[unsafe(no_mangle)]
pub extern "C" fn dss_kernels(layer: usize, columns: usize, logarithmic: bool) -> i32 {
    let axis = if logarithmic { Axis::Log } else { Axis::Linear };
    with_engine(|engine| {
        leave_numbers(&engine.kernels(layer, columns, axis)?);
        Ok(())
    })
}
