//! The table for a terminal: columns of equal width.

use super::{Table, layout};

/// Marks the best number of a column.
const BEST: &str = "▸ ";

/// The table, the runs, and what the budget changes.
pub(super) fn text(table: &Table) -> String {
    let mut out = format!("{}, budget {}\n\n", table.title, table.budget);
    let mut lines = vec![layout::head(table)];
    lines.extend(layout::about(table).iter().chain(&layout::lines(table)).map(marked));
    out += &aligned(&lines, 1);
    out += &format!("\n{} {BEST}the best of a column.\n", layout::LEGEND);
    for note in &table.notes {
        out += &format!("{note}\n");
    }
    out += "\n";
    let head = layout::RUNS.map(str::to_owned).to_vec();
    let runs = layout::runs(table);
    let failed = runs.iter().filter_map(|(cells, error)| Some((cells.last()?.clone(), (*error)?)));
    let failed: Vec<(String, &str)> = failed.collect();
    let lines = runs.iter().map(|(cells, _)| cells.clone()).collect();
    out += &aligned(&[vec![head], lines].concat(), 2);
    for (run, error) in failed {
        out += &format!("{run} failed: {error}\n");
    }
    out += "\nDifferences from the paper:\n";
    for (task, what) in layout::changes(table) {
        out += &format!("  {task}: {what}\n");
    }
    out
}

/// The cells of a line, with a mark before the best numbers.
fn marked(line: &layout::TableLine) -> Vec<String> {
    let mark = |best: bool| if best { BEST } else { "" };
    line.cells.iter().map(|cell| format!("{}{cell}", mark(cell.best))).collect()
}

/// The first `left` columns to the left, the others to the right.
fn aligned(lines: &[Vec<String>], left: usize) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| {
        lines.iter().filter_map(|line| line.get(i)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|i| width(i).unwrap_or(0)).collect();
    let mut out = String::new();
    for line in lines {
        let cells = line.iter().enumerate().map(|(i, cell)| {
            let pad = " ".repeat(widths[i] - cell.chars().count());
            if i < left { format!("{cell}{pad}") } else { format!("{pad}{cell}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        out += line.trim_end();
        out.push('\n');
    }
    out
}
