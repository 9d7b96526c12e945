//! Answers as words, which is how they travel between ranks: exact, a NaN included. The inputs stay behind; they are
//! added from the data.

use super::{Answer, Outcome};

/// A list of answers.
pub(super) fn from_answers(answers: &[Answer]) -> Vec<u64> {
    let mut words = Vec::new();
    for Answer { example, loss, outcome, .. } in answers {
        words.extend([*example as u64, loss.to_bits()]);
        match outcome {
            Outcome::Class { class, likeliest } => {
                words.extend([0, *class as u64, likeliest.len() as u64]);
                words.extend(likeliest.iter().flat_map(|(i, p)| [*i as u64, p.to_bits()]));
            }
            Outcome::Positions { asked, right } => words.extend([1, *asked, *right]),
            Outcome::Values { positions, targets, outputs } => {
                let lengths = [positions.len(), targets.len(), outputs.len()];
                words.push(2);
                words.extend(lengths.map(|length| length as u64));
                words.extend(positions.iter().map(|&position| position as u64));
                words.extend(targets.iter().map(|target| u64::from(target.to_bits())));
                words.extend(outputs.iter().map(|output| output.to_bits()));
            }
        }
    }
    words
}

/// The answers of [`from_answers`].
pub(super) fn to_answers(words: &[u64]) -> Vec<Answer> {
    let mut words = words.iter().copied();
    let mut answers = Vec::new();
    while let Some(example) = words.next() {
        let mut next = || words.next().expect("whole answers");
        let loss = f64::from_bits(next());
        let outcome = match next() {
            0 => {
                let (class, count) = (next() as usize, next());
                let likeliest = (0..count).map(|_| (next() as usize, f64::from_bits(next())));
                Outcome::Class { class, likeliest: likeliest.collect() }
            }
            1 => Outcome::Positions { asked: next(), right: next() },
            _ => {
                let [positions, targets, outputs] = [next(), next(), next()];
                Outcome::Values {
                    positions: (0..positions).map(|_| next() as usize).collect(),
                    targets: (0..targets).map(|_| f32::from_bits(next() as u32)).collect(),
                    outputs: (0..outputs).map(|_| f64::from_bits(next())).collect(),
                }
            }
        };
        answers.push(Answer { example: example as usize, loss, inputs: Vec::new(), outcome });
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_bit_for_bit() {
        let answer = |example, outcome| Answer { example, loss: 0.1, inputs: Vec::new(), outcome };
        let values = |targets| Outcome::Values {
            positions: vec![3, 5],
            targets,
            outputs: vec![0.1 + 0.2, -0.0],
        };
        let answers = [
            answer(7, Outcome::Class { class: 2, likeliest: vec![(1, 0.7), (2, 0.3)] }),
            answer(0, Outcome::Positions { asked: 9, right: 4 }),
            answer(9, values(vec![1.5, f32::MIN_POSITIVE])),
        ];
        assert_eq!(to_answers(&from_answers(&answers)), answers);
        let missing = [answer(1, values(vec![f32::NAN]))];
        let back = to_answers(&from_answers(&missing));
        assert!(matches!(&back[0].outcome, Outcome::Values { targets, .. } if targets[0].is_nan()));
        assert!(to_answers(&[]).is_empty());
    }
}
