//! `table.html`: one page that needs nothing else.

use std::fmt::Write;

use super::layout::TableCell;
use super::{Table, layout};
use crate::text::escape;

pub(super) fn page(table: &Table) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}, budget {budget}</title>\n<style>\n{style}{own}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<h1>{title}</h1>\n<p class=\"quiet\">Budget {budget}. {legend} Bold: the best of a column.</p>\n",
        title = escape(table.title),
        budget = escape(&table.budget.to_string()),
        style = crate::report::STYLE,
        own = include_str!("style.css"),
        legend = escape(layout::LEGEND),
    );
    for note in &table.notes {
        let _ = writeln!(out, "<p class=\"quiet\">{}</p>", escape(note));
    }
    out.push_str("</header>\n<div class=\"scroll\">\n<table class=\"grid-of-runs\">\n<thead>\n");
    head(&mut out, &layout::head(table), 1);
    for line in layout::about(table) {
        row(&mut out, &line.cells, "about");
    }
    out.push_str("</thead>\n<tbody>\n");
    for line in layout::lines(table) {
        row(&mut out, &line.cells, "");
    }
    out.push_str("</tbody>\n</table>\n</div>\n<section>\n<h2>Runs</h2>\n<div class=\"scroll\">\n<table>\n<thead>\n");
    head(&mut out, &layout::RUNS.map(str::to_owned), 2);
    out.push_str("</thead>\n<tbody>\n");
    for (cells, error) in layout::runs(table) {
        run(&mut out, &cells, error);
    }
    out.push_str("</tbody>\n</table>\n</div>\n</section>\n<section>\n<h2>Differences from the paper</h2>\n<dl>\n");
    for (task, what) in layout::changes(table) {
        let _ = writeln!(out, "<dt><b>{}</b></dt><dd>{}</dd>", escape(&task), escape(&what));
    }
    out.push_str("</dl>\n</section>\n</main>\n</body>\n</html>\n");
    out
}

/// The first `left` columns are aligned to the left.
fn head(out: &mut String, cells: &[String], left: usize) {
    let cells = cells.iter().enumerate().map(|(i, cell)| {
        let class = if i < left { "" } else { " class=\"number\"" };
        format!("<th{class} scope=\"col\">{}</th>", escape(cell))
    });
    let _ = writeln!(out, "<tr>{}</tr>", cells.collect::<String>());
}

fn row(out: &mut String, cells: &[TableCell], class: &str) {
    let cells = cells.iter().enumerate().map(|(i, cell)| match i {
        0 => format!("<th scope=\"row\">{}</th>", escape(&cell.ours)),
        _ if cell.best => format!("<td class=\"number best\">{}</td>", with_quiet_paper(cell)),
        _ => format!("<td class=\"number\">{}</td>", with_quiet_paper(cell)),
    });
    let _ = writeln!(out, "<tr class=\"{class}\">{}</tr>", cells.collect::<String>());
}

/// `ours (paper)`, the paper's number less loud.
fn with_quiet_paper(cell: &TableCell) -> String {
    let ours = escape(&cell.ours);
    let space = if ours.is_empty() { "" } else { " " };
    match &cell.paper {
        Some(paper) => format!("{ours}{space}<span class=\"quiet\">({})</span>", escape(paper)),
        None => ours,
    }
}

/// The directory links to the report of the run.
fn run(out: &mut String, cells: &[String], error: Option<&str>) {
    let last = cells.len() - 1;
    // Only complete runs have parameters.
    let done = !cells[last - 1].is_empty();
    let cells = cells.iter().enumerate().map(|(i, cell)| {
        let text = escape(cell);
        match i {
            0 => format!("<th scope=\"row\">{text}</th>"),
            1 => format!("<td>{text}</td>"),
            _ if i == last && done => {
                format!("<td class=\"number\"><a href=\"{text}/report.html\">{text}</a></td>")
            }
            _ => format!("<td class=\"number\">{text}</td>"),
        }
    });
    let _ = writeln!(out, "<tr>{}</tr>", cells.collect::<String>());
    if let Some(error) = error {
        let _ = writeln!(
            out,
            "<tr><td colspan=\"{}\"><p class=\"status\">{}</p></td></tr>",
            last + 1,
            escape(error)
        );
    }
}
