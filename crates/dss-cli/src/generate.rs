//! `dss generate`

use std::process::ExitCode;
use std::time::Instant;

use dss_format::feed::{Feed, TokenFeed};
use dss_infer::generate::Sampling;
use dss_infer::{CheckpointMeta, Model};

use crate::args::GenerateArgs;
use crate::export::named;
use crate::failure::Failure;
use crate::{output, runs, stream};

pub fn run(args: GenerateArgs) -> Result<ExitCode, Failure> {
    let path = runs::model_file(&args.model)?;
    let model = Model::load(&path).map_err(|e| named(&path, e))?;
    let mut feed = tokens(model.meta())?;
    let mut prompt = Vec::new();
    let bad = |what: dss_format::feed::Fault| {
        Failure::usage(format!("the prompt cannot be read: {what}"))
    };
    feed.push(args.prompt.as_bytes(), &mut prompt).map_err(bad)?;
    feed.finish(&mut prompt).map_err(bad)?;
    let GenerateArgs { temperature, top_k, top_p, seed, length, .. } = args;
    let sampling = Sampling { temperature, top_k, top_p, seed };
    let mut generator =
        model.generator(&prompt, sampling).map_err(|e| Failure::usage(e.to_string()))?;
    output::bytes(args.prompt.as_bytes())?;
    let start = Instant::now();
    for _ in 0..length {
        output::bytes(&feed.text(generator.next_token(&model)?))?;
    }
    let seconds = start.elapsed().as_secs_f64();
    output::bytes(b"\n")?;
    let rate = length as f64 / seconds.max(1e-9);
    output::log_line(format_args!("{length} tokens in {seconds:.2} s: {rate:.0} tokens/s"));
    Ok(ExitCode::SUCCESS)
}

/// How text becomes the model's tokens.
fn tokens(meta: &CheckpointMeta) -> Result<TokenFeed, Failure> {
    match stream::feed(meta)? {
        Feed::Tokens(feed) => Ok(feed),
        _ => Err(Failure::usage("this model reads numbers, not text")
            .hint("train a language model: dss train lm --data FILE")),
    }
}
