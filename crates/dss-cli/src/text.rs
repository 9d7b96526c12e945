//! Numbers and paths for a terminal.

use std::borrow::Cow;
use std::path::Path;

use dss_data::Baseline;
use dss_train::Scores;

/// The score that counts, with its unit: `61.30 %`, `1.5000 nats = 2.1640 bits per token` or `0.00123`.
pub fn score(scores: &Scores) -> String {
    match scores.in_words(number) {
        (score, Some(other)) => format!("{score} = {other}"),
        (score, None) => score,
    }
}

/// The errors of a regression next to those of simple methods; nothing if none are known.
pub fn baselines(scores: &Scores) -> Vec<String> {
    let all = scores.with_baselines();
    let width = all.iter().map(|b| b.name.chars().count()).max().unwrap_or(0);
    let head = (!all.is_empty()).then(|| format!("{:<width$}  {:>8}  {:>8}", "", "mse", "mae"));
    let row =
        |b: &Baseline| format!("{:<width$}  {:>8}  {:>8}", b.name, number(b.mse), number(b.mae));
    head.into_iter().chain(all.iter().map(row)).collect()
}

/// What was taken for what; nothing if that is not known, or more than a terminal shows.
pub fn confusion(scores: &Scores, labels: &[String]) -> Vec<String> {
    const MOST: usize = 12;
    const NAME: usize = 8;
    let Some(counts) = scores.confusion.as_ref().filter(|c| (2..=MOST).contains(&c.len())) else {
        return Vec::new();
    };
    let name = |class: usize| match labels.get(class) {
        Some(label) => label.chars().filter(|c| !c.is_control()).take(NAME).collect(),
        None => class.to_string(),
    };
    let names: Vec<String> = (0..counts.len()).map(name).collect();
    let row = |name: &str, cells: &mut dyn Iterator<Item = String>| {
        let cells: String = cells.map(|cell| format!(" {cell:>NAME$}")).collect();
        format!("{name:<NAME$}{cells}")
    };
    let head = ["".to_owned(), "true class by row, predicted class by column".to_owned()];
    let top = row("", &mut names.iter().cloned());
    let rows = names
        .iter()
        .zip(counts)
        .map(|(name, counts)| row(name, &mut counts.iter().map(u64::to_string)));
    head.into_iter().chain([top]).chain(rows).collect()
}

/// Text in which control characters other than line ends and tabs are written as in JSON, `\\u001b`: a label or the name
/// of a file may come from anywhere, and must not give orders to the terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_order = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_order) {
        return text.into();
    }
    let shown = |c: char| if is_order(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() };
    text.chars().map(shown).collect::<String>().into()
}

/// Four digits.
pub fn number(x: f64) -> String {
    if x == 0.0 || (1e-3..1e5).contains(&x.abs()) { format!("{x:.4}") } else { format!("{x:.3e}") }
}

/// A path as a shell takes it.
pub fn shell(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@~".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_classes_have_a_table() {
        let scores = |confusion| Scores { confusion, ..Scores::default() };
        let labels = ["no".to_owned()];
        let table = confusion(&scores(Some(vec![vec![7, 1], vec![2, 30]])), &labels);
        let expected = [
            "               no        1",
            "no              7        1",
            "1               2       30",
        ];
        assert_eq!(table[2..], expected);
        assert!(confusion(&scores(None), &labels).is_empty());
        assert!(confusion(&scores(Some(vec![vec![0; 13]; 13])), &labels).is_empty());
    }

    #[test]
    fn paths_survive_a_shell() {
        assert_eq!(shell(Path::new("runs/listops-laptop-0")), "runs/listops-laptop-0");
        assert_eq!(shell(Path::new("my runs/it's")), r"'my runs/it'\''s'");
    }

    #[test]
    fn orders_to_a_terminal_are_shown() {
        assert_eq!(printable("a\tb\nc"), "a\tb\nc");
        assert_eq!(printable("\u{1b}[2J\u{9b}2J\r"), r"\u001b[2J\u009b2J\u000d");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([number(0.12345), number(1e-7), number(0.0)], ["0.1235", "1.000e-7", "0.0000"]);
    }
}
