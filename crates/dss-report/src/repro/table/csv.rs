//! `table.csv`: a line for each run, and for each number that is only reported.

use super::Table;

const HEAD: &str = "task,model,label,state,seed,score,measure,steps,seconds,parameters,paper,run\n";

pub(super) fn text(table: &Table) -> String {
    let mut out = HEAD.to_owned();
    for (i, column) in table.columns.iter().enumerate() {
        for row in &table.rows {
            let (entry, label) = (&row.entries[i], quoted(row.label));
            let (task, paper) = (&column.task, entry.paper.unwrap_or_default());
            let Some(model) = row.model else {
                if !paper.is_empty() {
                    out += &format!("{task},,{label},reported,,,,,,,{paper},\n");
                }
                continue;
            };
            for run in &entry.runs {
                let (score, steps) = (shown(run.score), shown(run.steps));
                let measure = column.measure.filter(|_| run.score.is_some()).unwrap_or_default();
                let (seconds, parameters) = (shown(run.seconds), shown(run.parameters));
                out += &format!(
                    "{task},{model},{label},{},{},{score},{measure},{steps},{seconds},{parameters},{paper},{}\n",
                    run.state, run.seed, run.dir
                );
            }
        }
    }
    out
}

fn shown(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
