//! The numbers of the paper's tables, as printed.

/// What the paper prints where a model fails, or where it cannot be run.
pub const FAILS: &str = "✗";

/// A table of the paper: test accuracies in per cent.
#[derive(Debug)]
pub struct PaperTable {
    /// The tasks of its columns.
    pub tasks: &'static [&'static str],
    /// Its rows, from the top.
    pub rows: &'static [PaperRow],
}

/// A row of a table.
#[derive(Debug)]
pub struct PaperRow {
    /// The system, as the paper calls it; if it can be run here, its name here.
    pub label: &'static str,
    /// Its name here, if it can be run here.
    pub model: Option<&'static str>,
    /// Whether its numbers are those that other papers reported.
    pub by_others: bool,
    /// A number for each column; empty where the paper has none.
    pub numbers: &'static [&'static str],
    /// The last column of Table 1.
    pub average: Option<&'static str>,
}

const fn reported(
    label: &'static str,
    numbers: &'static [&'static str],
    average: Option<&'static str>,
) -> PaperRow {
    PaperRow { label, model: None, by_others: true, numbers, average }
}

const fn ours(
    model: &'static str,
    numbers: &'static [&'static str],
    average: Option<&'static str>,
) -> PaperRow {
    PaperRow { label: model, model: Some(model), by_others: false, numbers, average }
}

/// A system that can be run here, with the numbers of another paper.
const fn by_others(
    model: &'static str,
    numbers: &'static [&'static str],
    average: Option<&'static str>,
) -> PaperRow {
    PaperRow { by_others: true, ..ours(model, numbers, average) }
}

/// Table 1: Long Range Arena.
pub const LRA: PaperTable = PaperTable {
    tasks: &["listops", "text", "retrieval", "image", "pathfinder", "path-x"],
    rows: &[
        by_others(
            "transformer",
            &["36.37", "64.27", "57.46", "42.44", "71.40", FAILS],
            Some("53.66"),
        ),
        by_others("reformer", &["37.27", "56.10", "53.40", "38.07", "68.50", FAILS], Some("50.56")),
        by_others("bigbird", &["36.05", "64.02", "59.29", "40.83", "74.87", FAILS], Some("54.17")),
        by_others(
            "linear-transformer",
            &["16.13", "65.90", "53.09", "42.34", "75.30", FAILS],
            Some("50.46"),
        ),
        by_others(
            "performer",
            &["18.01", "65.40", "53.82", "42.77", "77.05", FAILS],
            Some("51.18"),
        ),
        by_others("fnet", &["35.33", "65.11", "59.61", "38.67", "77.80", FAILS], Some("54.42")),
        by_others(
            "nystromformer",
            &["37.15", "65.52", "79.56", "41.58", "70.94", FAILS],
            Some("57.46"),
        ),
        by_others("luna", &["37.25", "64.57", "79.29", "47.38", "77.72", FAILS], Some("59.37")),
        by_others(
            "h-transformer-1d",
            &["49.53", "78.69", "63.99", "46.05", "68.78", FAILS],
            Some("61.41"),
        ),
        reported(
            "S4 (Gu et al. 2022)",
            &["58.35", "76.02", "87.09", "87.26", "86.05", "88.10"],
            Some("80.48"),
        ),
        ours("s4", &["57.6", "75.4", "87.6", "86.5", "86.2", "88.0"], Some("80.21")),
        ours("dss-softmax", &["60.6", "84.8", "87.8", "85.7", "84.6", "87.8"], Some("81.88")),
        ours("dss-exp", &["59.7", "84.6", "87.6", "84.9", "84.7", "85.6"], Some("81.18")),
        ours("dss-exp-no-scale", &["59.3", "82.4", "86.0", "81.2", "81.3", FAILS], Some("65.03")),
    ],
};

/// Table 2: Speech Commands.
pub const SPEECH: PaperTable = PaperTable {
    tasks: &["speech-mfcc", "speech"],
    rows: &[
        by_others("transformer", &["90.75", FAILS], None),
        by_others("performer", &["80.85", "30.77"], None),
        by_others("ode-rnn", &["65.9", FAILS], None),
        by_others("nrde", &["89.8", "16.49"], None),
        by_others("exp-rnn", &["82.13", "11.6"], None),
        by_others("lipschitz-rnn", &["88.38", FAILS], None),
        by_others("ckconv", &["95.3", "71.66"], None),
        by_others("wavegan-d", &[FAILS, "96.25"], None),
        reported("S4 (Gu et al. 2022)", &["93.96", "98.32"], None),
        ours("s4", &["", "98.1"], None),
        ours("dss-softmax", &["", "97.7"], None),
        ours("dss-exp", &["", "98.2"], None),
        ours("dss-exp-no-scale", &["", "97.7"], None),
    ],
};

/// Table 3: ablations of DSS-softmax.
pub const ABLATIONS: PaperTable = PaperTable {
    tasks: &["listops", "text", "image", "pathfinder", "path-x", "speech"],
    rows: &[
        reported("Non-State-Space best", &["49.5", "78.7", "47.4", "77.8", FAILS, "96.5"], None),
        ours("dss-softmax", &["60.6", "84.8", "85.7", "84.6", "87.8", "97.7"], None),
        ours("random-init", &["57.6", "80.54", "72.13", "77.5", FAILS, "96.8"], None),
        ours("kernel-128", &["51.6", "75.41", "83.8", "65.1", FAILS, "96.7"], None),
    ],
};

/// The last row of Table 3: the 95th percentile of argmax |K| over all kernels of DSS-softmax.
pub const ARGMAX_95: [(&str, &str); 6] = [
    ("listops", "89"),
    ("text", "124"),
    ("image", "66"),
    ("pathfinder", "87"),
    ("path-x", "1269"),
    ("speech", "81"),
];

/// Input lengths, of Table 1 and the caption of Table 2.
const LENGTHS: [(&str, usize); 8] = [
    ("listops", 2000),
    ("text", 2048),
    ("retrieval", 4000),
    ("image", 1024),
    ("pathfinder", 1024),
    ("path-x", 16384),
    ("speech", 16000),
    ("speech-mfcc", 161),
];

/// Training examples of the data sets that the presets of the paper use in full.
const TRAINING_EXAMPLES: [(&str, usize); 4] =
    [("text", 25_000), ("retrieval", 147_086), ("image", 45_000), ("speech", 24_482)];

impl PaperTable {
    /// The number of a row for a task; `None` where the paper has none.
    pub fn number(&self, row: &PaperRow, task: &str) -> Option<&'static str> {
        let column = self.tasks.iter().position(|name| *name == task)?;
        row.numbers.get(column).copied().filter(|number| !number.is_empty())
    }
}

/// The number of a model that can be run here, from whichever table has it.
pub fn number(model: &str, task: &str) -> Option<&'static str> {
    [&LRA, &SPEECH, &ABLATIONS].into_iter().find_map(|table| {
        let row = table.rows.iter().find(|row| row.model == Some(model))?;
        table.number(row, task)
    })
}

/// The average of a model over Table 1.
pub fn average(model: &str) -> Option<&'static str> {
    LRA.rows.iter().find(|row| row.model == Some(model))?.average
}

/// The input length of a task in the paper.
pub fn length(task: &str) -> Option<usize> {
    LENGTHS.iter().find(|(name, _)| *name == task).map(|(_, length)| *length)
}

/// Training examples of a task whose whole data set is used.
pub fn training_examples(task: &str) -> Option<usize> {
    TRAINING_EXAMPLES.iter().find(|(name, _)| *name == task).map(|(_, examples)| *examples)
}

/// The 95th percentile of argmax |K| of a task in the paper.
pub fn argmax_95(task: &str) -> Option<&'static str> {
    ARGMAX_95.iter().find(|(name, _)| *name == task).map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_numbers_of_each_table() {
        let lra = |label: &str, task| {
            let row = LRA.rows.iter().find(|row| row.label == label).unwrap();
            LRA.number(row, task).unwrap()
        };
        assert_eq!(lra("transformer", "pathfinder"), "71.40");
        assert_eq!(lra("luna", "image"), "47.38");
        assert_eq!(lra("h-transformer-1d", "retrieval"), "63.99");
        assert_eq!(lra("S4 (Gu et al. 2022)", "path-x"), "88.10");
        assert_eq!(number("dss-softmax", "text"), Some("84.8"));
        assert_eq!(number("dss-exp-no-scale", "path-x"), Some(FAILS));
        assert_eq!(number("dss-exp", "speech"), Some("98.2"));
        assert_eq!(number("dss-exp", "speech-mfcc"), None);
        assert_eq!(number("kernel-128", "pathfinder"), Some("65.1"));
        assert_eq!(number("random-init", "image"), Some("72.13"));
        assert_eq!(number("dss-softmax", "delay"), None);
        assert_eq!(argmax_95("path-x"), Some("1269"));
        assert_eq!(average("dss-softmax"), Some("81.88"));
    }

    #[test]
    fn every_row_has_a_number_for_each_column() {
        for table in [&LRA, &SPEECH, &ABLATIONS] {
            for row in table.rows {
                assert_eq!(row.numbers.len(), table.tasks.len(), "{}", row.label);
                for number in row.numbers.iter().filter(|n| !n.is_empty() && **n != FAILS) {
                    assert!((10.0..100.0).contains(&number.parse::<f64>().unwrap()), "{number}");
                }
            }
        }
    }

    /// The averages of Table 1 follow from its columns. A failure on Path-X counts as chance (50) for the systems that
    /// others reported, but is left out for H-Transformer-1D and counts as 0 for DSS-exp-no-scale.
    #[test]
    fn averages_follow_from_the_columns() {
        for row in LRA.rows {
            let failed = match (row.by_others, row.label) {
                (true, "h-transformer-1d") => None,
                (true, _) => Some(50.0),
                (false, _) => Some(0.0),
            };
            let numbers = row.numbers.iter().filter_map(|n| n.parse().ok().or(failed));
            let numbers: Vec<f64> = numbers.collect();
            let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
            let average: f64 = row.average.unwrap().parse().unwrap();
            assert!((mean - average).abs() < 0.01, "{}: {mean}, not {average}", row.label);
        }
    }

    /// Numbers that are in two tables agree.
    #[test]
    fn tables_agree_with_each_other() {
        let softmax = &ABLATIONS.rows[1];
        for task in ABLATIONS.tasks {
            assert_eq!(ABLATIONS.number(softmax, task), number("dss-softmax", task), "{task}");
        }
    }
}
