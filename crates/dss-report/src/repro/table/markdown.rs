//! `table.md`.

use super::{Table, layout};

pub(super) fn text(table: &Table) -> String {
    let mut out = format!("# {}, budget {}\n\n", table.title, table.budget);
    let head = layout::head(table);
    out += &line(&head);
    out += &rule(head.len(), 1);
    for row in layout::about(table).iter().chain(&layout::lines(table)) {
        out += &bold_line(row);
    }
    out += &format!("\n{} Bold: the best of a column.\n", escape(layout::LEGEND));
    for note in &table.notes {
        out += &format!("\n{}\n", escape(note));
    }
    out += "\n## Runs\n\n";
    out += &line(&layout::RUNS.map(str::to_owned));
    out += &rule(layout::RUNS.len(), 2);
    let runs = layout::runs(table);
    for (cells, _) in &runs {
        out += &line(cells);
    }
    for (cells, error) in &runs {
        if let (Some(run), Some(error)) = (cells.last(), error) {
            out += &format!("\n{} failed: {}\n", escape(run), escape(error));
        }
    }
    out += "\n## Differences from the paper\n\n";
    for (task, what) in layout::changes(table) {
        out += &format!("- **{task}**: {}\n", escape(&what));
    }
    out
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// A line with the best numbers in bold; those of the paper, in brackets behind them, are not.
fn bold_line(row: &layout::TableLine) -> String {
    let cells = row.cells.iter().map(|cell| match (cell.best, &cell.paper) {
        (false, _) => escape(&cell.to_string()),
        (true, Some(paper)) => format!("**{}** ({})", escape(&cell.ours), escape(paper)),
        (true, None) => format!("**{}**", escape(&cell.ours)),
    });
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// The first `left` columns to the left, the others to the right.
fn rule(columns: usize, left: usize) -> String {
    let rules = (0..columns).map(|i| if i < left { "---" } else { "---:" });
    format!("| {} |\n", rules.collect::<Vec<_>>().join(" | "))
}

/// Text that stays in its cell and is not markup.
fn escape(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|").replace('*', "\\*").replace('<', "&lt;")
}
