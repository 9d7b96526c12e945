//! The part of an endless input that a prediction is for.

use dss_infer::{Listener, Model, Window};

use crate::args::{Span, StreamArgs};
use crate::failure::Failure;
use crate::output;

/// Hops of a window unless told otherwise.
const HOPS: usize = 4;

/// The requested window, or the one needed by a model that cannot run past its training length.
pub fn choose(
    model: &Model,
    args: &StreamArgs,
    rate: Option<f64>,
) -> Result<Option<Window>, Failure> {
    let length = match (args.window, model.max_len()) {
        (Some(window), _) => positions(window, "--window", rate)?,
        (None, Some(most)) => most as f64,
        (None, None) if args.hop.is_some() => {
            return Err(
                Failure::usage("--hop needs a window").hint("add --window, such as --window 1s")
            );
        }
        (None, None) => return Ok(None),
    };
    let hops = match args.hop {
        Some(hop) => whole_hops(length, positions(hop, "--hop", rate)?)?,
        None => HOPS.min(length as usize),
    };
    // At some rates a hop is not a whole number of positions.
    let hop = (length / hops as f64 + 1e-6) as usize;
    let window = Window { length: hop * hops, hop };
    if let Some(most) = model.max_len().filter(|&most| length > most as f64) {
        let message = format!("the window has {length} positions, but the model takes {most}");
        let most = text(most, rate);
        return Err(Failure::usage(message).hint(format!("use a --window of at most {most}")));
    }
    let [whole, part] = [window.length, window.hop].map(|n| text(n, rate));
    if args.window.is_none() {
        output::log_line(format_args!(
            "this model cannot run past its training length: predictions are for the last {whole}, a new stream \
             begins every {part} (--window, --hop)"
        ));
    } else if window.length as f64 != length {
        output::log_line(format_args!("the window is {whole}: {hops} hops of {part}"));
    }
    Ok(Some(window))
}

fn whole_hops(window: f64, hop: f64) -> Result<usize, Failure> {
    let (hops, most) = (window / hop, Listener::MAX_STREAMS);
    let whole = hops.round();
    if (hops - whole).abs() < 1e-6 && (1.0..=most as f64).contains(&whole) {
        return Ok(whole as usize);
    }
    Err(Failure::usage(format!(
        "the window is {hops:.4} hops long, but must be a whole number from 1 to {most}"
    ))
    .hint("such as --window 1s --hop 250ms"))
}

/// The longest length of input in positions: years of sound.
const MOST: f64 = 1e12;

/// A length of input in positions.
pub fn positions(span: Span, option: &str, rate: Option<f64>) -> Result<f64, Failure> {
    match span.positions(rate) {
        Some(count) if count > MOST => {
            Err(Failure::usage(format!("{option} is {count:.3e} positions, more than {MOST:e}"))
                .hint("the unit is a position unless s or ms follows: 500, 2s, 250ms"))
        }
        Some(count) => Ok(count.max(1.0)),
        None => Err(Failure::usage(format!("the input has no rate, so {option} cannot be a time"))
            .hint(format!(
                "give the number of positions per second with --rate, or give {option} in positions"
            ))),
    }
}

/// `1.000 s`, or `784 positions`.
fn text(positions: usize, rate: Option<f64>) -> String {
    match rate {
        Some(rate) => format!("{:.3} s", positions as f64 / rate),
        None => format!("{positions} positions"),
    }
}
