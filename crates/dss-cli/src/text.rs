//! Numbers and paths for a terminal.

use std::borrow::Cow;
use std::path::Path;

use dss_data::Baseline;
use dss_train::Scores;

/// The score that counts, with what helps to judge it: `61.30 % (most frequent class 50.00 %, macro F1 0.6127)`,
/// `1.5000 nats = 2.1640 bits per token` or `0.00123`.
pub fn score(scores: &Scores) -> String {
    let (score, other) = scores.in_words(number);
    match (other, scores.majority().zip(scores.macro_f1())) {
        (Some(other), _) => format!("{score} = {other}"),
        (None, Some((majority, f1))) => {
            format!("{score} (most frequent class {:.2} %, macro F1 {f1:.4})", 100.0 * majority)
        }
        (None, None) => score,
    }
}

/// The scores next to those of simple methods; nothing if none are known.
pub fn baselines(scores: &Scores) -> Vec<String> {
    let all = scores.with_baselines();
    let names: Vec<_> = all.iter().map(|b| printable(&b.name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let cells = |b: &Baseline| match b.accuracy {
        Some(accuracy) => vec![format!("{:.2} %", 100.0 * accuracy)],
        None => [b.mse, b.mae].into_iter().flatten().map(number).collect(),
    };
    let line = |name: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("  {cell:>8}")).collect();
        format!("{name:<width$}{cells}")
    };
    let head: &[&str] = if scores.accuracy.is_some() { &["accuracy"] } else { &["mse", "mae"] };
    let head = line("", &head.iter().map(|name| name.to_string()).collect::<Vec<_>>());
    let head = (!all.is_empty()).then_some(head);
    head.into_iter().chain(names.iter().zip(&all).map(|(name, b)| line(name, &cells(b)))).collect()
}

/// The confusion matrix; nothing if there is none, or if it is too large for a terminal. Columns are numbered where
/// their names do not fit into `columns` characters.
pub fn confusion(scores: &Scores, labels: &[String], columns: usize) -> Vec<String> {
    const MOST: usize = 12;
    let Some(counts) = scores.confusion.as_ref().filter(|c| (2..=MOST).contains(&c.len())) else {
        return Vec::new();
    };
    let name = |class: usize| match labels.get(class) {
        Some(label) => printable(label).replace(['\n', '\t'], " "),
        None => class.to_string(),
    };
    let mut names: Vec<String> = (0..counts.len()).map(name).collect();
    let width =
        |cells: &mut dyn Iterator<Item = &String>| cells.map(|cell| cell.chars().count()).max();
    let cells: Vec<Vec<String>> =
        counts.iter().map(|row| row.iter().map(u64::to_string).collect()).collect();
    let number = width(&mut cells.iter().flatten()).unwrap_or(0);
    let longest = width(&mut names.iter()).unwrap_or(0);
    let numbered = longest + names.len() * (1 + number.max(longest)) > columns;
    let mut heads = names.clone();
    if numbered {
        heads = (1..=names.len()).map(|i| format!("[{i}]")).collect();
        names.iter_mut().zip(&heads).for_each(|(name, head)| *name = format!("{head} {name}"));
    }
    let first = width(&mut names.iter()).unwrap_or(0);
    let other = number.max(width(&mut heads.iter()).unwrap_or(0));
    let row = |name: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!(" {cell:>other$}")).collect();
        format!("{name:<first$}{cells}")
    };
    let title = ["".to_owned(), "true class by row, predicted class by column".to_owned()];
    let rows = names.iter().zip(&cells).map(|(name, cells)| row(name, cells));
    title.into_iter().chain([row("", &heads)]).chain(rows).collect()
}

/// Text in which control characters other than line ends and tabs are written as in JSON, `\\u001b`: a label or the
/// name of a file may come from anywhere, and must not control the terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_order = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_order) {
        return text.into();
    }
    let shown = |c: char| if is_order(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() };
    text.chars().map(shown).collect::<String>().into()
}

/// A label or a name in a line whose parts are separated by tabs: a line end or a tab in it is written as `\\n`, `\\t`.
pub fn cell(text: &str) -> String {
    text.replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r")
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
        let counts = Some(vec![vec![7, 1], vec![2, 30]]);
        let table = confusion(&scores(counts.clone()), &labels, 80);
        assert_eq!(table[2..], ["   no  1", "no  7  1", "1   2 30"]);
        assert!(confusion(&scores(None), &labels, 80).is_empty());
        assert!(confusion(&scores(Some(vec![vec![0; 13]; 13])), &labels, 80).is_empty());

        // Long names are whole, and columns numbered where they would not fit.
        let labels = ["x".repeat(30), "y".repeat(40)];
        let wide = confusion(&scores(counts.clone()), &labels, 200);
        assert!(wide[2].contains(&labels[0]) && wide[2].ends_with(&labels[1]), "{wide:?}");
        let narrow = confusion(&scores(counts), &labels, 80);
        assert!(narrow[2].trim_start().starts_with("[1] [2]"), "{narrow:?}");
        assert!(narrow[4].starts_with(&format!("[2] {}   2  30", labels[1])), "{narrow:?}");
    }

    #[test]
    fn accuracies_have_something_to_compare_with() {
        let confusion = Some(vec![vec![3, 1], vec![0, 4]]);
        let scores = Scores { accuracy: Some(0.875), confusion, ..Scores::default() };
        assert_eq!(score(&scores), "87.50 % (most frequent class 50.00 %, macro F1 0.8730)");
        let unknown = Scores { confusion: None, ..scores };
        assert_eq!(score(&unknown), "87.50 %");
    }

    #[test]
    fn scores_are_next_to_those_of_simple_methods() {
        let always =
            Baseline { name: "always up".into(), accuracy: Some(0.5), ..Default::default() };
        let classes = Scores { accuracy: Some(0.9), baselines: vec![always], ..Scores::default() };
        let expected = ["            accuracy", "this model   90.00 %", "always up    50.00 %"];
        assert_eq!(baselines(&classes), expected);
        let last = Baseline::errors("last value", 0.5, 0.25);
        let (mse, mae) = (Some(0.125), Some(1.0));
        let values = Scores { mse, mae, baselines: vec![last], ..Scores::default() };
        assert_eq!(baselines(&values)[2], "last value    0.5000    0.2500");
        assert!(baselines(&Scores::default()).is_empty());
    }

    #[test]
    fn paths_survive_a_shell() {
        assert_eq!(shell(Path::new("runs/listops-laptop-0")), "runs/listops-laptop-0");
        assert_eq!(shell(Path::new("my runs/it's")), r"'my runs/it'\''s'");
    }

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(printable("a\tb\nc"), "a\tb\nc");
        assert_eq!(printable("\u{1b}[2J\u{9b}2J\r"), r"\u001b[2J\u009b2J\u000d");
    }

    #[test]
    fn a_cell_is_in_one_line() {
        assert_eq!(cell("a\tb\r\n"), r"a\tb\r\n");
        assert_eq!(cell("don't say \"é\""), "don't say \"é\"");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([number(0.12345), number(1e-7), number(0.0)], ["0.1235", "1.000e-7", "0.0000"]);
    }
}
