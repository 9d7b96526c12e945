//! The rows that can be run: the models and ablations of training that have a name for tables.

use std::sync::LazyLock;

use dss_train::config;

use super::paper;

/// A model, or an ablation of one.
#[derive(Debug, PartialEq, Eq)]
pub struct GridModel {
    /// Its name on the command line and in directories.
    pub name: &'static str,
    /// Its name in tables.
    pub label: &'static str,
    /// One of the models of `dss train --model`.
    pub base: &'static str,
    /// One of the ablations of `dss train --ablation`.
    pub ablation: Option<&'static str>,
}

/// All of them: those of the paper's Table 1 in its order, then the others.
pub static MODELS: LazyLock<Vec<GridModel>> = LazyLock::new(|| {
    let models = config::MODELS.iter().map(|model| GridModel {
        name: model.name,
        label: model.label,
        base: model.name,
        ablation: None,
    });
    let ablations = config::ABLATIONS.iter().map(|ablation| GridModel {
        name: ablation.name,
        label: ablation.label,
        base: config::MODELS[0].name,
        ablation: Some(ablation.name),
    });
    let mut all: Vec<_> = models.chain(ablations).filter(|model| !model.label.is_empty()).collect();
    let place = |name| paper::LRA.rows.iter().position(|row| row.model == Some(name));
    all.sort_by_key(|model| place(model.name).unwrap_or(usize::MAX));
    all
});

/// The model of this name.
pub fn model(name: &str) -> Option<&'static GridModel> {
    MODELS.iter().find(|model| model.name == name)
}

/// DSS-softmax: its speed decides the steps of a budget, and its settings are compared with the paper's.
pub fn reference() -> &'static GridModel {
    model(config::MODELS[0].name).expect("the default model is a row")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_paper() {
        let names: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
        let paper: Vec<&str> = paper::LRA.rows.iter().filter_map(|row| row.model).collect();
        assert_eq!(names[..paper.len()], paper);
        assert!(config::MODELS.iter().all(|model| names.contains(&model.name)), "{names:?}");
        assert_eq!(reference().label, "DSS-softmax");
    }

    #[test]
    fn every_row_of_the_paper_that_is_ours_is_a_model() {
        for table in [&paper::LRA, &paper::SPEECH, &paper::ABLATIONS] {
            assert!(
                table.rows.iter().filter_map(|row| row.model).all(|name| model(name).is_some())
            );
        }
    }
}
