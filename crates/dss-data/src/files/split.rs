//! Which sequence belongs to which split: by a digest of its content, so that names and order do not matter.

use std::collections::BTreeMap;

use super::record::Record;

/// A record with its digest and the class to keep proportions by.
pub(super) struct Item {
    pub record: Record,
    pub digest: [u8; 32],
    pub class: u32,
}

impl Item {
    fn key(&self) -> (&[u8; 32], &str) {
        (&self.digest, &self.record.name)
    }
}

/// Puts items in the order of their digests: the order of every split.
pub(super) fn sort(items: &mut [Item]) {
    items.sort_by(|a, b| a.key().cmp(&b.key()));
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
