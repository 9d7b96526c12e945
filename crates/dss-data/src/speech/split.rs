//! Which clips are for training, validation and test; by content, never by the order of files.

use super::clips::Clip;
use crate::store::content_order;

/// The clips of the three splits by folder or list; `None` if some clip has neither.
pub(super) fn official(clips: &[Clip], kept: &[u32], seed: u64) -> Option<[Vec<u32>; 3]> {
    let mut splits = [const { Vec::new() }; 3];
    for &i in kept {
        splits[clips[i as usize].official? as usize].push(i);
    }
    Some(splits.map(|numbers| ordered(clips, numbers, seed)))
}

/// 70 % for training, 15 % for validation, 15 % for test, of every word alike.
pub(super) fn random(clips: &[Clip], kept: &[u32], seed: u64) -> [Vec<u32>; 3] {
    let words = clips.iter().map(|clip| clip.word as usize + 1).max().unwrap_or(0);
    let mut by_word = vec![Vec::new(); words];
    for i in ordered(clips, kept.to_vec(), seed) {
        by_word[clips[i as usize].word as usize].push(i);
    }
    // As scikit-learn counts: 30 % rounded up are held out, and half of them, rounded up, are the test.
    let held = (3 * kept.len()).div_ceil(10);
    let train = apportion(kept.len() - held, &sizes(&by_word));
    let mut splits = [const { Vec::new() }; 3];
    for (numbers, count) in by_word.iter_mut().zip(train) {
        splits[0].extend(numbers.drain(..count));
    }
    let val = apportion(held / 2, &sizes(&by_word));
    for (numbers, count) in by_word.iter_mut().zip(val) {
        splits[1].extend(numbers.drain(..count));
        splits[2].append(numbers);
    }
    splits.map(|numbers| ordered(clips, numbers, seed))
}

/// The numbers in an order that depends on the clips' content.
fn ordered(clips: &[Clip], mut numbers: Vec<u32>, seed: u64) -> Vec<u32> {
    let clip = |i: &u32| &clips[*i as usize];
    // Equal samples may have different words: first an order that does not depend on the files.
    numbers.sort_by_key(|i| (clip(i).word, clip(i).digest));
    let digests: Vec<&[u8]> = numbers.iter().map(|i| &clip(i).digest[..]).collect();
    content_order(seed, &digests).into_iter().map(|place| numbers[place as usize]).collect()
}

fn sizes(groups: &[Vec<u32>]) -> Vec<usize> {
    groups.iter().map(Vec::len).collect()
}

/// `total` things shared out in proportion to the sizes: rounded down, what is left to the largest remainders.
fn apportion(total: usize, sizes: &[usize]) -> Vec<usize> {
    let all = sizes.iter().sum::<usize>().max(1);
    let mut shares: Vec<usize> = sizes.iter().map(|size| size * total / all).collect();
    let left = total.saturating_sub(shares.iter().sum());
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(sizes[i] * total % all));
    order.into_iter().take(left).for_each(|i| shares[i] += 1);
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::task::Split;

    fn clips(sizes: &[usize]) -> Vec<Clip> {
        let words = sizes.iter().enumerate().flat_map(|(word, &n)| (0..n).map(move |i| (word, i)));
        let clip = |(word, i): (usize, usize)| Clip {
            digest: Sha256::digest(format!("{word} {i}")).into(),
            word: word as u32,
            official: Some(Split::ALL[i % 3]),
            samples: 16_000,
            moments: Vec::new(),
        };
        words.map(clip).collect()
    }

    #[test]
    fn the_counts_of_the_paper() {
        let sizes = [3_497, 3_498, 3_497, 3_498, 3_497, 3_498, 3_497, 3_498, 3_497, 3_498];
        let clips = clips(&sizes);
        let kept: Vec<u32> = (0..clips.len() as u32).collect();
        let splits = random(&clips, &kept, 0);
        assert_eq!([0, 1, 2].map(|i| splits[i].len()), [24_482, 5_246, 5_247]);
    }

    #[test]
    fn the_order_of_files_does_not_matter() {
        let forward = clips(&[30, 20, 50]);
        let mut backward = clips(&[30, 20, 50]);
        backward.reverse();
        let kept: Vec<u32> = (0..100).collect();
        let turned =
            |splits: [Vec<u32>; 3]| splits.map(|s| s.iter().map(|i| 99 - i).collect::<Vec<_>>());
        assert_eq!(random(&forward, &kept, 1), turned(random(&backward, &kept, 1)));
        assert_ne!(random(&forward, &kept, 1), random(&forward, &kept, 2));
        let splits = official(&forward, &kept, 1).unwrap();
        assert_eq!(splits, turned(official(&backward, &kept, 1).unwrap()));
        assert!(splits[1].iter().all(|&i| forward[i as usize].official == Some(Split::Val)));
        backward[4].official = None;
        assert!(official(&backward, &kept, 1).is_none());
        assert!(official(&backward, &kept[5..], 1).is_some(), "it is not among those kept");
    }

    proptest! {
        #[test]
        fn every_clip_is_in_one_split_and_words_are_shared_out(sizes in prop::collection::vec(0usize..40, 1..6)) {
            let clips = clips(&sizes);
            let kept: Vec<u32> = (0..clips.len() as u32).collect();
            let splits = random(&clips, &kept, 3);
            let mut all = splits.concat();
            all.sort_unstable();
            prop_assert_eq!(&all, &kept);
            for (word, &size) in sizes.iter().enumerate() {
                for (numbers, share) in splits.iter().zip([0.7, 0.15, 0.15]) {
                    let n = numbers.iter().filter(|&&i| clips[i as usize].word as usize == word).count();
                    prop_assert!((n as f64 - share * size as f64).abs() <= 2.0);
                }
            }
        }
    }
}
