//! One example, as text or a picture.

use serde::Serialize;

use crate::{Example, Input, InputKind, Target, TargetKind, Task};

/// Columns of a picture or curve.
const WIDTH: usize = 64;
/// Characters of a text.
const TEXT: usize = 600;
/// Most curves that are drawn.
const CURVES: usize = 32;
const INK: &[u8] = b" .:-=+*#%@";
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// An example in words and pictures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// The target.
    pub target: String,
    /// The sequence, or both of a pair: text, a picture of characters, or one curve per channel.
    pub inputs: Vec<String>,
}

impl Sample {
    /// `picture`: numbers are the pixels of a square.
    pub(super) fn new(task: &Task, example: &Example, picture: bool) -> Self {
        let inputs = std::iter::once(&example.input).chain(&example.second);
        let shown = inputs.map(|input| match input {
            Input::Tokens(tokens) => text(tokens, task.vocabulary.as_deref()),
            Input::Values(values) => {
                let channels = match task.spec.input {
                    InputKind::Values { channels } => channels.max(1),
                    InputKind::Tokens { .. } => 1,
                };
                let side = values.len().isqrt();
                match picture && channels == 1 && side * side == values.len() {
                    true => pixels(values, side),
                    false => curves(values, channels),
                }
            }
        });
        Self { inputs: shown.collect(), target: target(task, &example.target) }
    }
}

fn target(task: &Task, target: &Target) -> String {
    let name = |labels: &[String], class: usize| {
        labels.get(class).cloned().unwrap_or_else(|| class.to_string())
    };
    let some = |mut words: Vec<String>, count: usize| {
        if count > words.len() {
            words.push("...".into());
        }
        words.join(" ")
    };
    const SOME: usize = 40;
    match (target, &task.spec.target) {
        (Target::Class(class), TargetKind::Class { labels }) => name(labels, *class as usize),
        (Target::PositionClasses(classes), TargetKind::PositionClasses { labels }) => {
            let word = |&class: &i32| match usize::try_from(class) {
                Ok(class) => name(labels, class),
                Err(_) => "-".into(),
            };
            some(classes.iter().take(SOME).map(word).collect(), classes.len())
        }
        (Target::PositionClasses(classes), TargetKind::NextToken { symbols }) => {
            let tokens: Vec<u32> = classes.iter().filter_map(|&c| u32::try_from(c).ok()).collect();
            text(&tokens, Some(symbols))
        }
        (Target::Class(class), _) => class.to_string(),
        (Target::PositionClasses(classes), _) => format!("{} classes", classes.len()),
        (Target::Values(values) | Target::PositionValues(values), _) => {
            let word = |v: &f32| if v.is_nan() { "-".into() } else { format!("{v:.4}") };
            some(values.iter().take(SOME).map(word).collect(), values.len())
        }
    }
}

/// Tokens as their symbols: those of one character next to each other, longer ones with spaces.
pub fn text(tokens: &[u32], vocabulary: Option<&[String]>) -> String {
    let symbol = |token: u32| match vocabulary.and_then(|symbols| symbols.get(token as usize)) {
        Some(symbol) => symbol.clone(),
        None => format!("<{token}>"),
    };
    let plain = |symbol: &str| symbol.starts_with('<') && symbol.len() > 1;
    let short = vocabulary
        .is_some_and(|symbols| symbols.iter().all(|s| plain(s) || s.chars().count() == 1));
    let mut shown = String::new();
    let mut count = 0;
    for (i, &token) in tokens.iter().enumerate() {
        let symbol = symbol(token);
        count += symbol.chars().count();
        if count > TEXT {
            return format!("{shown} ... ({} more)", tokens.len() - i);
        }
        if !short && i > 0 {
            shown.push(' ');
        }
        // Nothing may move the cursor of a terminal.
        symbol.chars().for_each(|c| match c {
            '\n' | '\t' => shown.push(' '),
            c if c.is_control() => shown.push('\u{fffd}'),
            c => shown.push(c),
        });
    }
    shown
}

/// A square of grey values, each character two rows high.
fn pixels(values: &[f32], side: usize) -> String {
    let (low, high) = range(values);
    let step = side.div_ceil(WIDTH).max(1);
    let rows: Vec<String> = (0..side)
        .step_by(2 * step)
        .map(|y| {
            let ink = |x: usize| {
                let rows = y..side.min(y + 2 * step);
                let cells = rows.flat_map(|y| {
                    values[y * side + x..y * side + side.min(x + step)].iter().copied()
                });
                let (count, sum) = cells.fold((0, 0.0f64), |(n, s), v| (n + 1, s + f64::from(v)));
                let level = level(sum / f64::from(count.max(1)), low, high, INK.len());
                char::from(INK[level])
            };
            (0..side).step_by(step).map(ink).collect::<String>()
        })
        .collect();
    rows.join("\n")
}

/// One curve per channel; each column shows the value of its stretch that is farthest from the channel's mean.
fn curves(values: &[f32], channels: usize) -> String {
    let len = values.len() / channels;
    let columns = len.min(WIDTH);
    let mut lines = Vec::new();
    for channel in 0..channels.min(CURVES) {
        let one: Vec<f32> = values.iter().skip(channel).step_by(channels).copied().collect();
        let (low, high) = range(&one);
        let mean = one.iter().copied().map(f64::from).sum::<f64>() / one.len().max(1) as f64;
        let bar = |column: usize| {
            let stretch = &one[column * len / columns..(column + 1) * len / columns];
            let far = |v: &f32| (f64::from(*v) - mean).abs();
            let peak = stretch.iter().copied().max_by(|a, b| far(a).total_cmp(&far(b)));
            BARS[level(peak.map_or(low, f64::from), low, high, BARS.len())]
        };
        lines.push((0..columns).map(bar).collect::<String>());
    }
    if channels > CURVES {
        lines.push(format!("... ({} more channels)", channels - CURVES));
    }
    lines.join("\n")
}

fn range(values: &[f32]) -> (f64, f64) {
    let finite = values.iter().copied().filter(|v| v.is_finite()).map(f64::from);
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)))
}

/// Which of `levels` steps from low to high.
fn level(value: f64, low: f64, high: f64, levels: usize) -> usize {
    let share = if high > low { (value - low) / (high - low) } else { 0.0 };
    ((share * levels as f64) as usize).min(levels - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn symbols(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| s.to_string()).collect()
    }

    #[test]
    fn characters_stand_together_and_words_apart() {
        let letters = symbols(&["<pad>", "<unk>", "<eos>", "a", "<", "\n"]);
        assert_eq!(text(&[3, 4, 5, 3, 2], Some(&letters)), "a< a<eos>");
        let words = symbols(&["<pad>", "[MAX", "9", "X"]);
        assert_eq!(text(&[1, 2, 3], Some(&words)), "[MAX 9 X");
        assert_eq!(text(&[7, 300], None), "<7> <300>");
        assert_eq!(text(&[5, 9], Some(&letters)), " <9>");
        let bell = symbols(&["\u{7}", "\u{1b}"]);
        assert_eq!(text(&[0, 1], Some(&bell)), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn long_texts_are_cut() {
        let letters = symbols(&["a"]);
        let shown = text(&[0; 1000], Some(&letters));
        assert!(shown.ends_with("aaa ... (400 more)") && shown.len() == 600 + 15, "{shown}");
    }

    #[test]
    fn pictures() {
        let mut values = vec![0.0; 16];
        values[0] = 1.0;
        values[4] = 1.0;
        values[15] = 1.0;
        assert_eq!(pixels(&values, 4), "@   \n   +");
        let large = pixels(&vec![0.5; 128 * 128], 128);
        assert_eq!(large.lines().count(), 32);
        assert_eq!(pixels(&[f32::NAN; 4], 2), "  ");
    }

    #[test]
    fn curves_follow_the_values() {
        let rise: Vec<f32> = (0..8).flat_map(|i| [i as f32, 1.0]).collect();
        assert_eq!(curves(&rise, 2), "▁▂▃▄▅▆▇█\n▁▁▁▁▁▁▁▁");
        let long: Vec<f32> = (0..16_000).map(|i| (i as f32 * 0.01).sin()).collect();
        assert_eq!(curves(&long, 1).chars().count(), WIDTH);
        let mut mark = vec![0.0; 640];
        mark[15] = 1.0;
        assert!(curves(&mark, 1).starts_with("▁█▁"), "a single mark is seen");
        assert_eq!(curves(&[], 1), "");
        assert_eq!(curves(&[0.0; 40], 40).lines().count(), CURVES + 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_example_makes_it_panic(
            values in prop::collection::vec(any::<f32>(), 0..300), channels in 1usize..9,
            tokens in prop::collection::vec(0u32..9, 0..900), letters in prop::collection::vec(".{0,3}", 0..7),
        ) {
            curves(&values, channels);
            let side = values.len().isqrt();
            pixels(&values[..side * side], side);
            let shown = text(&tokens, Some(&letters));
            prop_assert!(shown.chars().all(|c| !c.is_control()));
        }
    }
}
