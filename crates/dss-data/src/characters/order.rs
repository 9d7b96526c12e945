//! The order of a split: by content, the classes mixed in proportion.

use std::collections::BTreeMap;

use crate::store::content_order;

/// An order of examples that depends on their `keys` (what they contain), their `classes` and the seed only. Every
/// first part of it has the classes in the proportion of the whole, to within one example of each.
///
/// Class c has its k-th example (by content, from 0) at the place (k + 1/2) / n_c of the way.
pub(crate) fn balanced_order(seed: u64, keys: &[&[u8]], classes: &[u32]) -> Vec<u32> {
    let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
    classes.iter().for_each(|&class| *seen.entry(class).or_default() += 1);
    let sizes = seen.clone();
    seen.values_mut().for_each(|count| *count = 0);
    let place = |i: u32| {
        let class = classes[i as usize];
        let k = seen.entry(class).or_default();
        *k += 1;
        // Distinct fractions of halves stay distinct in f64: sizes are below 2^32.
        ((2 * *k - 1) as f64 / sizes[&class] as f64, class, i)
    };
    let mut places: Vec<(f64, u32, u32)> =
        content_order(seed, keys).into_iter().map(place).collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    places.into_iter().map(|(_, _, i)| i).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(seed: u64, examples: &[(String, u32)]) -> Vec<(String, u32)> {
        let keys: Vec<&[u8]> = examples.iter().map(|(key, _)| key.as_bytes()).collect();
        let classes: Vec<u32> = examples.iter().map(|(_, class)| *class).collect();
        let order = balanced_order(seed, &keys, &classes);
        order.iter().map(|&i| examples[i as usize].clone()).collect()
    }

    #[test]
    fn two_equal_classes_alternate() {
        let examples: Vec<_> = (0..10u32).map(|i| (i.to_string(), u32::from(i < 5))).collect();
        let classes: Vec<u32> = order(1, &examples).iter().map(|(_, class)| *class).collect();
        assert_eq!(classes, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
        assert_ne!(order(1, &examples), order(2, &examples));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn it_depends_on_content_only_and_keeps_proportions(
            classes in prop::collection::vec(0u32..3, 0..60), seed in 0u64..9,
        ) {
            let examples: Vec<_> =
                classes.iter().enumerate().map(|(i, &class)| (format!("x{i}"), class)).collect();
            let found = order(seed, &examples);
            let reversed: Vec<_> = examples.iter().rev().cloned().collect();
            prop_assert_eq!(&found, &order(seed, &reversed));
            let mut sorted = found.clone();
            sorted.sort();
            let mut all = examples.clone();
            all.sort();
            prop_assert_eq!(sorted, all);
            let share = |part: &[(String, u32)], class| {
                part.iter().filter(|(_, c)| *c == class).count() as f64
            };
            for n in 0..=found.len() {
                for class in 0..3 {
                    let due = share(&found, class) * n as f64 / found.len().max(1) as f64;
                    prop_assert!((share(&found[..n], class) - due).abs() <= 1.5);
                }
            }
        }
    }
}
