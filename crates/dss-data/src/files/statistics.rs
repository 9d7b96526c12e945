//! Plain statistics of a sequence: what the linear baseline reads.

use crate::{Input, InputKind};

/// Of numbers with more channels, the first ones are described.
const CHANNELS: usize = 32;
/// Of a larger vocabulary, the first (most frequent) tokens are counted.
const TOKENS: usize = 256;
/// Octaves of the spectrum, from the fastest on.
const OCTAVES: usize = 8;
const QUANTILES: [f64; 7] = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0];

/// As many statistics for every sequence of a task. Of numbers, for every channel: mean, deviation, quantiles, slope and
/// the spectrum in octaves; of tokens: the share of each, and how many there are.
pub(super) fn statistics(input: &Input, kind: &InputKind) -> Vec<f64> {
    match (input, kind) {
        (Input::Values(values), InputKind::Values { channels }) => {
            let channel = |c| values.iter().skip(c).step_by(*channels).map(|&x| f64::from(x));
            let described = (0..*channels).take(CHANNELS);
            described.flat_map(|c| describe(channel(c).collect())).collect()
        }
        (Input::Tokens(tokens), InputKind::Tokens { vocab }) => {
            let mut shares = vec![0.0; TOKENS.min(*vocab)];
            for &token in tokens {
                if let Some(share) = shares.get_mut(token as usize) {
                    *share += 1.0 / tokens.len() as f64;
                }
            }
            shares.push((tokens.len() as f64).ln_1p());
            shares
        }
        _ => Vec::new(),
    }
}

/// Mean, deviation, slope, octaves, quantiles.
fn describe(mut x: Vec<f64>) -> Vec<f64> {
    let n = x.len().max(1) as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    let middle = (n - 1.0) / 2.0;
    let along = |(t, x): (usize, &f64)| (t as f64 - middle) * (x - mean);
    // Σ (t - middle)² = n (n² - 1) / 12; in units of the whole sequence.
    let slope = x.iter().enumerate().map(along).sum::<f64>() * 12.0 / (n * n - 1.0).max(1.0);
    let mut found = vec![mean, variance.sqrt(), slope];
    found.extend(octaves(&x).map(|power| (power / (variance + 1e-12) + 1e-4).ln()));
    x.sort_by(f64::total_cmp);
    let quantile = |q: f64| x.get((q * (n - 1.0)).round() as usize).copied().unwrap_or(0.0);
    found.extend(QUANTILES.map(quantile));
    found
}

/// The power in each octave, by Haar's wavelets: mean square of half the difference of neighbours; then the same of
/// the means of neighbours.
fn octaves(x: &[f64]) -> [f64; OCTAVES] {
    let mut x = x.to_vec();
    std::array::from_fn(|_| {
        let (pairs, _) = x.as_chunks::<2>();
        let power = pairs.iter().map(|[a, b]| ((a - b) / 2.0).powi(2)).sum::<f64>();
        let power = power / pairs.len().max(1) as f64;
        x = pairs.iter().map(|[a, b]| (a + b) / 2.0).collect();
        power
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_and_an_alternation_by_hand() {
        let ramp: Vec<f64> = (0..101).map(f64::from).collect();
        let found = describe(ramp);
        assert_eq!(found.len(), 3 + OCTAVES + QUANTILES.len());
        assert!((found[0] - 50.0).abs() < 1e-12);
        assert!((found[1] - 850f64.sqrt()).abs() < 1e-9);
        assert!((found[2] - 101.0).abs() < 0.1, "{}", found[2]);
        assert_eq!(found[3 + OCTAVES..], [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 100.0]);
        let alternation: Vec<f64> = (0..64).map(|i| f64::from(i % 2)).collect();
        let [first, others @ ..] = octaves(&alternation);
        assert!(first == 0.25 && others.iter().all(|&power| power == 0.0));
    }

    #[test]
    fn every_input_has_as_many() {
        let values = InputKind::Values { channels: 2 };
        let width = statistics(&Input::Values(vec![1.0; 12]), &values).len();
        assert_eq!(statistics(&Input::Values(vec![1.0, 2.0]), &values).len(), width);
        let tokens = InputKind::Tokens { vocab: 5 };
        let shares = statistics(&Input::Tokens(vec![3, 3, 4, 2]), &tokens);
        assert_eq!(shares[..5], [0.0, 0.0, 0.25, 0.5, 0.25]);
        assert!(statistics(&Input::Tokens(vec![2]), &tokens).iter().all(|x| x.is_finite()));
    }
}
