//! Which sequence belongs to which split: by a digest of its content, so that names and order do not matter.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use super::FilesConfig;
use super::labels::Labels;
use super::record::{Record, Records};
use crate::hash::SplitHash;
use crate::task::Split;
use crate::{Error, Note, Result, units};

/// From this many sequences on, a tenth is enough for validation and for the test.
const MANY: usize = 1000;

/// A record with its digest and the class to keep proportions by.
pub(super) struct Item {
    pub record: Record,
    pub digest: [u8; 32],
    pub class: u32,
}

/// Train, val and test: as the data are divided, with missing ones split off from train.
pub(super) fn divide(
    config: &FilesConfig,
    path: &Path,
    parts: Vec<(Option<Split>, Records)>,
    labels: &Labels,
) -> Result<[Vec<Item>; 3]> {
    let mut splits = [Vec::new(), Vec::new(), Vec::new()];
    for (split, part) in parts {
        let items = &mut splits[split.unwrap_or(Split::Train) as usize];
        items.extend(part.records.into_iter().map(|record| Item {
            digest: record.digest(config.split_seed),
            class: labels.class(&record.label),
            record,
        }));
        sort(items);
    }
    let [train, val, test] = &mut splits;
    let all = train.len();
    let share = |set: f64| match set {
        set if set > 0.0 => set,
        _ if all < MANY => 0.2,
        _ => 0.1,
    };
    let shares = [("test", test, config.test_fraction), ("val", val, config.val_fraction)];
    for (name, part, set) in shares {
        if part.is_empty() {
            *part = take(train, share(set) * all as f64 / train.len() as f64);
        }
        if part.is_empty() {
            let advice = match labels.look_like_values(all) {
                true => "most classes have a single sequence; the labels are numbers: to predict them, set task.target=value"
                    .to_owned(),
                false => format!("add more, or set task.{name}_fraction higher"),
            };
            let what = format!("too few sequences ({all}) to set some aside for {name}; {advice}");
            return Err(Error::content(path, what));
        }
    }
    check_classes(path, &splits, labels)?;
    Ok(splits)
}

/// A class that occurs only in val or test cannot be learned, and would lower the score through no fault of the model.
fn check_classes(path: &Path, splits: &[Vec<Item>; 3], labels: &Labels) -> Result<()> {
    let known: HashSet<u32> = splits[0].iter().map(|item| item.class).collect();
    for (split, items) in Split::ALL.iter().zip(splits) {
        let unknown = || items.iter().filter(|item| !known.contains(&item.class));
        if let Some(item) = unknown().next() {
            let (count, split) =
                (units::plural(unknown().count() as u64, "sequence"), split.name());
            let class = labels.name(item.class);
            let what = format!(
                "{split} has classes that train lacks, such as {class:?} ({count} in all): a model cannot learn these; move some of their sequences to train, or remove them"
            );
            return Err(Error::content(path, what));
        }
    }
    Ok(())
}

/// A remark when sequences of val or test are also in train.
pub(super) fn repeated(splits: &[Vec<Item>; 3]) -> Option<Note> {
    let train: HashSet<&[u8; 32]> = splits[0].iter().map(|item| &item.digest).collect();
    let again = splits[1..].iter().flatten().filter(|item| train.contains(&item.digest)).count();
    let again = (again > 0).then(|| units::plural(again as u64, "sequence"));
    again.map(|again| format!("{again} of val and test also in train").into())
}

/// The hash of contents and labels, whatever the names and the order of files and rows.
pub(super) fn hash(task: &str, splits: &[Vec<Item>; 3]) -> SplitHash {
    let mut hash = SplitHash::new(task);
    hash.settings(&"without names");
    for (split, items) in Split::ALL.iter().zip(splits) {
        let mut rows: Vec<_> =
            items.iter().map(|item| (item.digest, item.record.label.to_string())).collect();
        rows.sort();
        for (digest, label) in rows {
            hash.bytes(split.name(), &digest);
            hash.bytes("label", label.as_bytes());
        }
    }
    hash
}

/// The hash of version 0.1, which has the names of files and the numbers of lines in it.
pub(super) fn hash_with_names(task: &str, splits: &[Vec<Item>; 3]) -> SplitHash {
    let mut hash = SplitHash::new(task);
    for (split, items) in Split::ALL.iter().zip(splits) {
        let mut items: Vec<&Item> = items.iter().collect();
        items.sort_by(|a, b| {
            a.digest.cmp(&b.digest).then_with(|| a.record.name.cmp(&b.record.name))
        });
        for item in items {
            hash.bytes(split.name(), item.record.name.as_bytes());
            hash.bytes("content", &item.digest);
            hash.bytes("label", item.record.label.to_string().as_bytes());
        }
    }
    hash
}

/// Puts items in the order of their digests: the order of every split. Names decide only between items that are equal.
pub(super) fn sort(items: &mut [Item]) {
    let label = |item: &Item| item.record.label.to_string();
    items.sort_by(|a, b| {
        let contents = a.digest.cmp(&b.digest).then_with(|| label(a).cmp(&label(b)));
        contents.then_with(|| a.record.name.cmp(&b.record.name))
    });
}

/// Takes about `fraction` of the items out, in proportion from each class; one of each class stays at least.
pub(super) fn take(items: &mut Vec<Item>, fraction: f64) -> Vec<Item> {
    let mut classes: BTreeMap<u32, Vec<Item>> = BTreeMap::new();
    sort(items);
    for item in items.drain(..) {
        classes.entry(item.class).or_default().push(item);
    }
    let mut taken = Vec::new();
    let mut seen = 0;
    for mut class in classes.into_values() {
        seen += class.len();
        let due = (seen as f64 * fraction).round() as usize;
        let now = due.saturating_sub(taken.len()).min(class.len() - 1);
        items.extend(class.split_off(now));
        taken.extend(class);
    }
    sort(items);
    sort(&mut taken);
    taken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::record::{Content, Label};
    use super::*;

    fn items(classes: &[u32]) -> Vec<Item> {
        let item = |(i, &class): (usize, &u32)| {
            let record = Record {
                name: i.to_string(),
                content: Content::Numbers(vec![i as f32]),
                label: Label::Name(class.to_string()),
            };
            Item { digest: record.digest(1), record, class }
        };
        classes.iter().enumerate().map(item).collect()
    }

    fn names(items: &[Item]) -> Vec<String> {
        items.iter().map(|item| item.record.name.clone()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_split_does_not_depend_on_the_order(
            classes in prop::collection::vec(0u32..4, 1..80), fraction in 0.05f64..0.9, seed in 0u64..99,
        ) {
            let mut a = items(&classes);
            let mut b = items(&classes);
            let order = crate::epoch_order(b.len(), seed, 0);
            let mut slots: Vec<Option<Item>> = b.drain(..).map(Some).collect();
            b.extend(order.iter().map(|&i| slots[i as usize].take().unwrap()));
            let taken = take(&mut a, fraction);
            prop_assert_eq!(names(&taken), names(&take(&mut b, fraction)));
            prop_assert_eq!(names(&a), names(&b));
            prop_assert_eq!(a.len() + taken.len(), classes.len());
            for class in &classes {
                prop_assert!(a.iter().any(|item| item.class == *class));
            }
        }
    }

    #[test]
    fn proportions_are_kept() {
        let classes: Vec<u32> = (0..300).map(|i| u32::from(i % 3 == 0)).collect();
        let mut rest = items(&classes);
        let taken = take(&mut rest, 0.1);
        let rare = taken.iter().filter(|item| item.class == 1).count();
        assert_eq!((taken.len(), rare), (30, 10));
    }
}
