//! `dss stream`

mod answers;
mod arrivals;
mod source;

use std::path::Path;
use std::process::ExitCode;

use dss_format::encoder::Encoder;
use dss_format::feed::Feed;
use dss_infer::{CheckpointMeta, Input, Model, State};

use crate::args::StreamArgs;
use crate::export::named;
use crate::failure::Failure;
use crate::interrupt::{self, INTERRUPTED};
use crate::{output, runs};
use answers::Answers;
use arrivals::{Arrivals, Event};
use source::{Positions, Source};

/// How the input of a model is read as it arrives.
pub fn feed(meta: &CheckpointMeta) -> Result<Feed, Failure> {
    Encoder::from_extra(&meta.extra)
        .map_err(Failure::failed)?
        .feed()
        .map_err(|what| Failure::usage(what).hint("give it whole files: dss predict RUN FILE"))
}

pub fn run(args: StreamArgs) -> Result<ExitCode, Failure> {
    let path = runs::model_file(&args.model)?;
    let model = Model::load(&path).map_err(|e| named(&path, e))?;
    let interrupted = interrupt::flag()?;
    let mut arrivals = Arrivals::open(&args.input, interrupted)?;
    let Some(mut source) = Source::new(feed(model.meta())?, &args, &mut arrivals)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let model = match source.rate_ratio() {
        Some(ratio) => {
            let model = model.at_rate(ratio).map_err(|e| Failure::usage(e.to_string()))?;
            let rate = source.rate().unwrap_or_default();
            let (trained, step) = (rate * ratio, (ratio * 1e4).round() / 1e4);
            output::log_line(format_args!(
                "the input has {rate} samples per second, the model was trained at {trained:.0}: its step is {step} \
                 times as long"
            ));
            model
        }
        None => model,
    };
    let mut state = match &args.state {
        Some(file) if file.exists() => load(&model, file)?,
        _ => model.state()?,
    };
    let mut answers = Answers::new(&model, &args, source.rate(), state.position())?;
    let end = loop {
        take(&model, &mut state, source.positions(), &mut answers)?;
        source.clear();
        match arrivals.next()? {
            Event::Bytes(bytes) => source.push(&bytes)?,
            event => break event,
        }
    };
    if matches!(end, Event::End) {
        source.finish()?;
        take(&model, &mut state, source.positions(), &mut answers)?;
    }
    if let Some(file) = &args.state {
        dss_nn::checkpoint::write_whole(file, &state.to_bytes(&model)?)?;
    }
    if matches!(end, Event::Interrupted) {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if state.position() == 0 {
        return Err(Failure::failed(eyre::eyre!("the input was empty")));
    }
    // The end of a text is a token too, but no part of what may go on.
    if let Some(token) = source.end_token() {
        let mut out = vec![0.0; model.outputs()];
        model.step(&mut state, Input::Tokens(&[token]), &mut out)?;
        answers.set(&out, state.position() - 1);
    }
    answers.last()?;
    Ok(ExitCode::SUCCESS)
}

/// Takes all positions that have arrived, in blocks that end where something is to be said.
fn take(
    model: &Model,
    state: &mut State,
    positions: Positions<'_>,
    answers: &mut Answers<'_>,
) -> Result<(), Failure> {
    let mut done = 0;
    while done < positions.count() {
        let count = answers.until_next(state.position()).min((positions.count() - done) as u64);
        // So much at a time keeps the buffers small.
        let count = count.min(1 << 12) as usize;
        let out = answers.buffer();
        model.block_step(state, positions.part(done, count), out)?;
        done += count;
        answers.taken(state.position())?;
    }
    Ok(())
}

fn load(model: &Model, path: &Path) -> Result<State, Failure> {
    let bytes =
        std::fs::read(path).map_err(|e| Failure::failed(eyre::eyre!("{}: {e}", path.display())))?;
    State::from_bytes(model, &bytes).map_err(|error| {
        named(path, error)
            .hint("it has to be of the same model and rate; name another file to start again")
    })
}
