//! `dss stream`

mod answers;
mod arrivals;
mod source;
mod window;

use std::path::Path;
use std::process::ExitCode;

use dss_format::encoder::Encoder;
use dss_format::feed::Feed;
use dss_infer::{CheckpointMeta, Input, Listener, Model, Window};

use crate::args::{Format, StreamArgs};
use crate::export::named;
use crate::failure::Failure;
use crate::interrupt::{self, INTERRUPTED};
use crate::{output, runs};
use answers::Answers;
use arrivals::{Arrivals, Event};
use source::{Positions, Source};

/// How the input of a model is read as it arrives.
pub fn feed(meta: &CheckpointMeta) -> Result<Feed, Failure> {
    meta.encoder()
        .map_err(Failure::failed)?
        .feed()
        .map_err(|what| Failure::usage(what).hint("give it whole files: dss predict RUN FILE"))
}

/// A table of texts has one in each row; a stream needs one text.
fn refuse_table_of_texts(meta: &CheckpointMeta, args: &StreamArgs) -> Result<(), Failure> {
    let reads_texts = match Encoder::from_extra(&meta.extra).map_err(Failure::failed)? {
        Encoder::Text(_) => true,
        Encoder::Files(encoder) => encoder.shape().is_none(),
        _ => false,
    };
    let ending = args.input.extension().map(|ending| ending.to_ascii_lowercase());
    let is_table = ending.is_some_and(|ending| ["csv", "tsv", "tab"].iter().any(|t| ending == *t));
    if !reads_texts || !is_table || args.format != Format::Auto {
        return Ok(());
    }
    let message = format!("{} is a table; a stream needs one text", args.input.display());
    Err(Failure::usage(message).hint(
        "`dss predict RUN FILE` reads the text of each row; --format text takes the whole file as one text",
    ))
}

/// Why a stream ended.
enum End {
    OfInput,
    Interrupted,
    /// Nobody reads the output any more.
    NoReader,
}

pub fn run(args: StreamArgs) -> Result<ExitCode, Failure> {
    let path = runs::model_file(&args.model)?;
    let model = Model::load(&path).map_err(|e| named(&path, e))?;
    // Before anything is said about the stream.
    model.state()?;
    refuse_table_of_texts(model.meta(), &args)?;
    // Not only at the end of the stream, when nothing can be done about it.
    if let Some(folder) = args.state.as_deref().and_then(Path::parent)
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        let message = format!("--state: the folder {} does not exist", folder.display());
        return Err(Failure::usage(message).hint("create it first, or choose another file"));
    }
    let interrupted = interrupt::flag()?;
    let mut arrivals = Arrivals::open(&args.input, interrupted)?;
    let Some(mut source) = Source::new(feed(model.meta())?, &args, &mut arrivals)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let model = match source.rate_ratio() {
        Some(ratio) => {
            let model = model.at_rate(ratio).map_err(|e| Failure::usage(e.to_string()))?;
            output::log_line(other_rate(source.rate().unwrap_or_default(), ratio));
            model
        }
        None => model,
    };
    let window = window::choose(&model, &args, source.rate())?;
    let mut listener = match &args.state {
        Some(file) if file.exists() => load(&model, window, file)?,
        _ => Listener::new(&model, window)?,
    };
    let wait = source.end_token().is_some();
    let mut answers =
        Answers::new(&model, &args, source.rate(), window, listener.position(), wait)?;
    let end = match listen(&model, &mut listener, &mut arrivals, &mut source, &mut answers) {
        Err(failure) if failure.is_broken_pipe() => End::NoReader,
        end => end?,
    };
    if let Some(file) = &args.state {
        dss_nn::checkpoint::write_whole(file, &listener.to_bytes(&model)?)?;
    }
    match end {
        End::Interrupted => return Ok(ExitCode::from(INTERRUPTED)),
        End::NoReader => return Ok(ExitCode::SUCCESS),
        End::OfInput => {}
    }
    if listener.position() == 0 {
        return Err(Failure::failed(eyre::eyre!("the input was empty")));
    }
    // The end of a text is a token too, but not part of the state: more text may follow.
    if let Some(token) = source.end_token() {
        let mut out = vec![0.0; model.outputs()];
        listener.push(&model, Input::Tokens(&[token]), &mut out)?;
        answers.replace(&out);
    }
    answers.last()?;
    Ok(ExitCode::SUCCESS)
}

/// The note about sound at another rate than the training's.
pub fn other_rate(rate: f64, ratio: f64) -> String {
    let (trained, step) = (rate * ratio, (ratio * 1e4).round() / 1e4);
    format!(
        "the input has {rate} samples per second, the model was trained at {trained:.0}: its step is {step} times as long"
    )
}

/// Takes positions as they arrive, until there are no more.
fn listen(
    model: &Model,
    listener: &mut Listener,
    arrivals: &mut Arrivals,
    source: &mut Source,
    answers: &mut Answers<'_>,
) -> Result<End, Failure> {
    let mut pushed = source.push_first();
    loop {
        // What came before a fault has its answers.
        take(model, listener, source.positions(), answers)?;
        source.clear();
        pushed?;
        match arrivals.next()? {
            Event::Bytes(bytes) => pushed = source.push(&bytes),
            Event::Interrupted => {
                answers.buffer()?;
                return Ok(End::Interrupted);
            }
            Event::End => break,
        }
    }
    let finished = source.finish();
    take(model, listener, source.positions(), answers)?;
    finished.map(|()| End::OfInput)
}

/// Takes all positions that have arrived, in blocks that end where a line is due.
fn take(
    model: &Model,
    listener: &mut Listener,
    positions: Positions<'_>,
    answers: &mut Answers<'_>,
) -> Result<(), Failure> {
    let mut done = 0;
    while done < positions.count() {
        let count = answers.until_next(listener.position()).min((positions.count() - done) as u64);
        // So much at a time keeps the buffers small.
        let count = count.min(1 << 12) as usize;
        listener.push(model, positions.part(done, count), answers.buffer()?)?;
        done += count;
        answers.taken(listener.position())?;
    }
    Ok(())
}

fn load(model: &Model, window: Option<Window>, path: &Path) -> Result<Listener, Failure> {
    let bytes =
        std::fs::read(path).map_err(|e| Failure::failed(eyre::eyre!("{}: {e}", path.display())))?;
    Listener::from_bytes(model, window, &bytes).map_err(|error| {
        named(path, error).hint(
            "a state belongs to one model, rate and window; choose another file to start again",
        )
    })
}
