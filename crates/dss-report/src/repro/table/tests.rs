//! The table of a grid of which some runs are done.

use super::super::{Budget, Request};
use super::*;

fn grid(name: &str, table: TableKind, tasks: &[&str]) -> (std::path::PathBuf, Grid) {
    let dir = std::env::temp_dir().join(format!("dss-table-{name}-{}", std::process::id()));
    let request = Request {
        budget: Some(Budget::Steps(20)),
        tasks: tasks.iter().map(|task| (*task).to_owned()).collect(),
        models: vec!["dss-softmax".into(), "kernel-128".into()],
        ..Request::default()
    };
    (dir.clone(), Grid::open(&dir, table, &request).unwrap())
}

fn table(name: &str, kind: TableKind, tasks: &[&str]) -> Table {
    let (_, grid) = grid(name, kind, tasks);
    let mut table = Table::new(&grid, &Progress::read(&grid));
    for (row, score) in table.rows.iter_mut().filter(|row| row.model.is_some()).zip([50.0, 40.0]) {
        let entry = &mut row.entries[0];
        (entry.ours, entry.spread) = (Some(score), Some(1.5));
        entry.runs[0].state = "done";
        entry.runs[0].score = Some(score);
        entry.runs[0].steps = Some(20);
        entry.runs[0].parameters = Some(1234);
        (entry.runs[0].seconds, entry.runs[0].peak_mb) = (Some(62.0), Some(345.4));
    }
    table.columns[0].measure = Some("accuracy");
    table.columns[0].chance = Some(16.0);
    table.columns[0].length = Some(200);
    table.notes = table.remarks();
    table
}

#[test]
fn ours_in_rows_and_reported_numbers_below() {
    let table = table("rows", TableKind::Ablations, &["listops", "image", "delay"]);
    let text = table.to_text();
    for part in [
        "Not run here, as the paper reports it: Non-State-Space best: listops 49.5, image 47.4.",
        "▸ 50.00 ± 1.50 (60.6)",
        "  40.00 ± 1.50 (51.6)",
        "no data (85.7)",
        "200 (2000)",
        "16.00",
        "(89)",
        "64 % (6 %) on listops",
        "delay: preset laptop; not in the paper",
        "depth 4 instead of 6",
        "left out: no data folder was given",
        "dss data get image",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains("average"), "{text}");
    let markdown = markdown::text(&table);
    assert!(!markdown.contains("| Non-State-Space best"), "{markdown}");
    assert!(markdown.contains("| 1 min 2 s | 345 MB | 1234 |"), "{markdown}");
    assert!(markdown.contains("| **50.00 ± 1.50** (60.6) |"), "{markdown}");
    assert!(markdown.contains("| 40.00 ± 1.50 (51.6) |"), "{markdown}");
    assert_eq!(html::page(&table).matches("class=\"number best\"").count(), 1);
    let lines: Vec<&str> = markdown.lines().filter(|line| line.starts_with("| ")).collect();
    let width = |line: &str| line.replace("\\|", "").matches('|').count();
    assert!(lines.iter().all(|line| [5, 10].contains(&width(line))), "{markdown}");
}

#[test]
fn the_best_error_is_the_least_and_one_number_is_not_compared() {
    let mut table = table("best", TableKind::Lra, &["listops", "delay"]);
    table.columns[0].measure = Some("mse");
    let best = |table: &Table| -> Vec<Vec<bool>> {
        let lines = layout::lines(table).into_iter();
        lines.map(|line| line.cells.iter().map(|cell| cell.best).collect()).collect()
    };
    let found = best(&table);
    let (kernel, softmax) = (found.len() - 1, found.len() - 2);
    assert_eq!((found[softmax][1], found[kernel][1]), (false, true));
    table.rows[softmax].entries[0].ours = None;
    assert!(best(&table).iter().flatten().all(|best| !best));
}

#[test]
fn files_that_others_read() {
    let table = table("files", TableKind::Lra, &["listops"]);
    let csv = csv::text(&table);
    let mut lines = csv.lines();
    let fields = lines.next().unwrap().split(',').count();
    assert!(csv.contains("listops,,Reformer,reported,,,,,,,,37.27,"), "{csv}");
    assert!(
        csv.contains("listops,dss-softmax,DSS-softmax,done,0,50,accuracy,20,62,345.4,1234,60.6,")
    );
    assert!(lines.all(|line| line.replace(", ", "").split(',').count() == fields), "{csv}");
    let json: serde_json::Value = serde_json::to_value(&table).unwrap();
    assert_eq!(json["budget"], "20steps");
    assert_eq!(json["reported"][0]["entries"][0]["paper"], "36.37");
    assert_eq!(json["rows"][0]["model"], "dss-softmax");
}

#[test]
fn the_page_is_whole_and_escaped() {
    let mut table = table("page", TableKind::Lra, &["listops"]);
    let run = &mut table.rows.last_mut().unwrap().entries[0].runs[0];
    (run.state, run.error) = ("failed", Some("loss <NaN> & more".into()));
    let page = html::page(&table);
    assert!(page.contains("loss &lt;NaN&gt; &amp; more") && !page.contains("<NaN>"));
    assert!(page.contains("prefers-color-scheme: dark") && page.ends_with("</html>\n"));
    for tag in ["table", "tr", "td", "th", "section", "div", "main", "dl", "dd", "dt"] {
        let open =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "<{tag}>");
    }
}

#[test]
fn the_average_needs_all_six_tasks() {
    let (_, grid) = grid("average", TableKind::Lra, &[]);
    let table = Table::new(&grid, &Progress::read(&grid));
    assert!(table.to_text().contains("(81.88)"), "{}", table.to_text());
    assert!(table.to_text().contains("Transformer: listops 36.37"), "{}", table.to_text());
    assert_eq!(table.rows.last().unwrap().average, None);
}

#[test]
fn mean_and_standard_deviation() {
    assert_eq!(mean_and_spread(&[]), (None, None));
    assert_eq!(mean_and_spread(&[3.0]), (Some(3.0), None));
    let (mean, spread) = mean_and_spread(&[1.0, 2.0, 3.0]);
    assert_eq!((mean, spread), (Some(2.0), Some(1.0)));
}
