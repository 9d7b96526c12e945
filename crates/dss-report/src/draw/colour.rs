//! Colours: a perceptually uniform map for heights, and one colour per layer.

/// Red, green, blue.
pub(crate) type Rgb = [u8; 3];

/// Entries of the colour map.
pub(crate) const MAGMA: usize = 256;

/// Matplotlib's magma as polynomials of degree 6 in t, within 2 % of its table (both are in the public domain).
const COEFFICIENTS: [[f64; 3]; 7] = [
    [-0.002136485053939582, -0.000749655052795221, -0.005386127855323933],
    [0.2516605407371642, 0.6775232436837668, 2.494026599312351],
    [8.353717279216625, -3.577719514958484, 0.3144679030132573],
    [-27.66873308576866, 14.26473078096533, -13.64921318813922],
    [52.17613981234068, -27.94360607168351, 12.94416944238394],
    [-50.76852536473588, 29.04658282127291, 4.23415299384598],
    [18.65570506591883, -11.48977351997711, -5.601961508734096],
];

/// The colour of an entry of the map: dark for 0, bright for 255.
pub(crate) fn magma(entry: u8) -> Rgb {
    let t = f64::from(entry) / (MAGMA - 1) as f64;
    [0, 1, 2].map(|part| {
        let value = COEFFICIENTS.iter().rev().fold(0.0, |sum, c| sum * t + c[part]);
        (255.0 * value).round().clamp(0.0, 255.0) as u8
    })
}

/// A colour for layer i of n, from blue over violet and red to orange, of a lightness that can be seen on white and on
/// black.
pub(crate) fn layer_colour(i: usize, n: usize) -> Rgb {
    let t = if n > 1 { i as f64 / (n - 1) as f64 } else { 0.0 };
    // A path through Oklch: lightness, chroma, hue in degrees.
    oklch(0.57 + 0.15 * t, 0.15, 255.0 + 170.0 * t)
}

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito 2008), without their yellow, which
/// is too pale for lines on white.
const CATEGORICAL: [Rgb; 7] = [
    [0, 114, 178],
    [86, 180, 233],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [0, 0, 0],
];

/// A colour for the i-th of a few things without an order.
pub(crate) fn categorical_colour(i: usize) -> Rgb {
    CATEGORICAL[i % CATEGORICAL.len()]
}

/// Oklch to sRGB (Ottosson 2020), clipped to what a screen has.
fn oklch(lightness: f64, chroma: f64, hue: f64) -> Rgb {
    let (a, b) = (chroma * hue.to_radians().cos(), chroma * hue.to_radians().sin());
    let l = (lightness + 0.3963377774 * a + 0.2158037573 * b).powi(3);
    let m = (lightness - 0.1055613458 * a - 0.0638541728 * b).powi(3);
    let s = (lightness - 0.0894841775 * a - 1.2914855480 * b).powi(3);
    let linear = [
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
    ];
    linear.map(|x| {
        let x = x.clamp(0.0, 1.0);
        let x = if x <= 0.0031308 { 12.92 * x } else { 1.055 * x.powf(1.0 / 2.4) - 0.055 };
        (255.0 * x).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance (WCAG).
    fn luminance(rgb: Rgb) -> f64 {
        let part = |x: u8| {
            let x = f64::from(x) / 255.0;
            if x <= 0.04045 { x / 12.92 } else { ((x + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(rgb[0]) + 0.7152 * part(rgb[1]) + 0.0722 * part(rgb[2])
    }

    #[test]
    fn magma_rises_from_black_to_its_pale_yellow() {
        // Entries 0, 128 and 255 of Matplotlib's table.
        for (entry, known) in [(0, [0, 0, 4]), (128, [183, 55, 121]), (255, [252, 253, 191])] {
            let found = magma(entry);
            for (a, b) in found.iter().zip(known) {
                assert!((i32::from(*a) - b).abs() <= 5, "{entry}: {found:?} {known:?}");
            }
        }
        let rising = (0..=255).map(|i| luminance(magma(i))).collect::<Vec<_>>();
        assert!(rising.windows(8).all(|w| w[7] > w[0]), "{rising:?}");
    }

    #[test]
    fn layers_can_be_seen_on_white_and_on_black() {
        assert_eq!(oklch(1.0, 0.0, 0.0), [255; 3]);
        assert_eq!(oklch(0.6279554, 0.2576833, 29.2338814), [255, 0, 0]);
        for n in [1, 2, 6, 48] {
            for i in 0..n {
                let l = luminance(layer_colour(i, n));
                let (on_white, on_black) = (1.05 / (l + 0.05), (l + 0.05) / 0.06);
                assert!(on_white > 2.0 && on_black > 2.5, "{i} of {n}: {on_white} {on_black}");
            }
        }
    }
}
