//! The confusion matrix as a table: rows are the true classes, the shade of a cell follows its share of the row.

use std::fmt::Write;

use crate::text::{count, escape};

/// The table; `labels` are the names of the classes, as far as they are known.
pub(super) fn html(matrix: &[Vec<u64>], labels: &[String]) -> String {
    let name = |i: usize| labels.get(i).map_or_else(|| i.to_string(), |label| escape(label));
    let mut out = String::from(
        "<p class=\"quiet\" id=\"confusion\">Rows: true class. Columns: predicted class. The stronger the colour of a cell, the \
         larger its share of the row.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Confusion matrix\">\n\
         <table class=\"confusion\" aria-describedby=\"confusion\">\n\
         <thead><tr><th class=\"side\" scope=\"col\">true \\ predicted</th>",
    );
    for i in 0..matrix.len() {
        let _ = write!(out, "<th scope=\"col\">{}</th>", name(i));
    }
    out.push_str("<th class=\"side\" scope=\"col\">recall</th></tr></thead>\n<tbody>\n");
    for (i, row) in matrix.iter().enumerate() {
        let total: u64 = row.iter().sum();
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", name(i));
        for (j, n) in row.iter().enumerate() {
            // The root makes rare confusions visible.
            let shade = (*n as f64 / total.max(1) as f64).sqrt();
            let class = match (*n, shade > 0.6) {
                (0, _) => "zero",
                (_, true) => "strong",
                _ => "some",
            };
            let _ = write!(
                out,
                "<td class=\"{class}\" style=\"background:rgba(var(--cell),{shade:.3})\" title=\"{} as {}: {} of {total}\">{}</td>",
                name(i),
                name(j),
                n,
                count(*n)
            );
        }
        let _ = writeln!(out, "<td class=\"side\">{}</td></tr>", ratio(row.get(i).copied(), total));
    }
    out.push_str("</tbody>\n<tfoot><tr><th class=\"side\" scope=\"row\">precision</th>");
    for j in 0..matrix.len() {
        let column = || matrix.iter().map(|row| row.get(j).copied().unwrap_or(0));
        let hits = matrix[j].get(j).copied();
        let _ = write!(out, "<td class=\"side\">{}</td>", ratio(hits, column().sum()));
    }
    out.push_str("<td></td></tr></tfoot>\n</table>\n</div>\n");
    out
}

fn ratio(hits: Option<u64>, total: u64) -> String {
    match hits {
        Some(hits) if total > 0 => format!("{:.1}\u{a0}%", 100.0 * hits as f64 / total as f64),
        _ => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_precision_and_names() {
        let labels = ["<cat>".to_owned(), "dog".to_owned()];
        let page = html(&[vec![3, 1], vec![0, 4]], &labels);
        assert!(page.contains("&lt;cat&gt;") && !page.contains("<cat>"));
        assert!(page.contains("75.0\u{a0}%") && page.contains("80.0\u{a0}%"), "{page}");
        assert!(page.contains("&lt;cat&gt; as dog: 1 of 4"));
    }
}
