//! `table.csv`: a line for each run, and for each number that is only reported.

use super::Table;
use crate::text::csv_text;

pub(super) fn text(table: &Table) -> String {
    let head =
        "task model label state seed score measure steps seconds peak_mb parameters paper run";
    let mut lines: Vec<Vec<String>> = vec![head.split(' ').map(str::to_owned).collect()];
    for (i, column) in table.columns.iter().enumerate() {
        for row in table.reported.iter().chain(&table.rows) {
            let entry = &row.entries[i];
            let (task, label) = (column.task.clone(), row.label.to_owned());
            let paper = entry.paper.unwrap_or_default().to_owned();
            let Some(model) = row.model else {
                if !paper.is_empty() {
                    let mut line = vec![String::new(); lines[0].len()];
                    (line[0], line[2], line[3], line[11]) = (task, label, "reported".into(), paper);
                    lines.push(line);
                }
                continue;
            };
            lines.extend(entry.runs.iter().map(|run| {
                let measure = column.measure.filter(|_| run.score.is_some()).unwrap_or_default();
                vec![
                    task.clone(),
                    model.to_owned(),
                    label.clone(),
                    run.state.to_owned(),
                    run.seed.to_string(),
                    shown(run.score),
                    measure.to_owned(),
                    shown(run.steps),
                    shown(run.seconds),
                    shown(run.peak_mb),
                    shown(run.parameters),
                    paper.clone(),
                    run.dir.clone(),
                ]
            }));
        }
    }
    csv_text(lines)
}

fn shown(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
