//! The input form of a clip, the waveform or MFCC features, and how each is stored and scaled.

use dss_format::encoder::SoundForm;
use dss_format::encoder::speech::COEFFICIENTS;

use super::mfcc::mfcc;

/// Of each channel, the sum and the sum of squares over the stored numbers of a clip.
pub(super) type ClipMoments = Vec<[f64; 2]>;

/// The task that reads a form.
pub(super) fn task(form: SoundForm) -> &'static str {
    match form {
        SoundForm::Wave => "speech",
        SoundForm::Mfcc => "speech-mfcc",
    }
}

/// What is added to the standard deviation before it divides. The authors add 1e-5 to that of samples which they have
/// divided by 2¹⁵ twice: 1e-5 · 2¹⁵ in ours.
fn epsilon(form: SoundForm) -> f64 {
    match form {
        SoundForm::Wave => 0.32768,
        SoundForm::Mfcc => 1e-5,
    }
}

/// What the stored numbers are divided by.
fn unit(form: SoundForm) -> f64 {
    match form {
        SoundForm::Wave => 32768.0,
        SoundForm::Mfcc => 1.0,
    }
}

/// The bytes to store of a clip, and their moments: 16-bit samples, or features as f32.
pub(super) fn record(form: SoundForm, samples: &[i16], pcm: &[u8]) -> (Vec<u8>, ClipMoments) {
    match form {
        SoundForm::Wave => {
            let sum: i64 = samples.iter().map(|&s| i64::from(s)).sum();
            let square: i64 = samples.iter().map(|&s| i64::from(s).pow(2)).sum();
            (pcm.to_vec(), vec![[sum as f64, square as f64]])
        }
        SoundForm::Mfcc => {
            let features = mfcc(&unit_samples(samples));
            let mut moments = vec![[0.0; 2]; COEFFICIENTS];
            for (i, &feature) in features.iter().enumerate() {
                let [sum, square] = &mut moments[i % COEFFICIENTS];
                *sum += f64::from(feature);
                *square += f64::from(feature).powi(2);
            }
            (features.iter().flat_map(|f| f.to_le_bytes()).collect(), moments)
        }
    }
}

/// Mean of each channel over the clips, and what divides it: the standard deviation plus epsilon. Clips that are short
/// count with the zeros that fill them up.
pub(super) fn scaling<'a>(
    form: SoundForm,
    clips: impl Iterator<Item = &'a ClipMoments>,
) -> (Vec<f32>, Vec<f32>) {
    let mut count = 0.0;
    let mut sums = vec![[0.0; 2]; form.channels()];
    for moments in clips {
        count += form.steps() as f64;
        for (sum, moment) in sums.iter_mut().zip(moments) {
            sum[0] += moment[0];
            sum[1] += moment[1];
        }
    }
    let unit = unit(form);
    let scaling = |[sum, square]: &[f64; 2]| {
        let mean = sum / count / unit;
        let variance = square / count / unit.powi(2) - mean * mean;
        (mean as f32, (variance.max(0.0).sqrt() + epsilon(form)) as f32)
    };
    sums.iter().map(scaling).unzip()
}

/// Samples from -1 to 1.
pub(super) fn unit_samples(samples: &[i16]) -> Vec<f32> {
    samples.iter().map(|&s| f32::from(s) / 32768.0).collect()
}

#[cfg(test)]
mod tests {
    use dss_format::encoder::speech::SAMPLES;

    use super::*;

    #[test]
    fn scaling_is_that_of_all_samples() {
        let clips: [Vec<i16>; 2] = [vec![16384; SAMPLES], vec![-8192; SAMPLES / 2]];
        let moments = clips.map(|samples| record(SoundForm::Wave, &samples, &[]).1);
        let (mean, divisor) = scaling(SoundForm::Wave, moments.iter());
        // Half of the samples are 1/2, a quarter -1/4, and a quarter is filled up with 0.
        let expected = 0.5 * 0.5 - 0.25 * 0.25;
        let variance = 0.5 * 0.25 + 0.25 * 0.0625 - expected * expected;
        assert!((f64::from(mean[0]) - expected).abs() < 1e-7);
        assert!((f64::from(divisor[0]) - variance.sqrt() - 0.32768).abs() < 1e-7);
    }

    #[test]
    fn features_are_scaled_by_channel() {
        let sample = |n: usize| (n * n % 1999) as i16 * 3;
        let moments = [1, 3].map(|k| {
            let samples: Vec<i16> = (0..SAMPLES).map(|n| sample(n * k)).collect();
            let (record, moments) = record(SoundForm::Mfcc, &samples, &[]);
            assert_eq!(record.len(), 161 * 20 * 4);
            moments
        });
        let (mean, divisor) = scaling(SoundForm::Mfcc, moments.iter());
        assert_eq!((mean.len(), divisor.len()), (20, 20));
        let expected = (moments[0][7][0] + moments[1][7][0]) / 322.0;
        assert!((f64::from(mean[7]) - expected).abs() < 1e-5);
    }
}
