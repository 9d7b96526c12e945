//! Half precision (IEEE 754 binary16), of slim model files.

/// The number with these bits. Exact.
pub(crate) fn to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let (exponent, fraction) = (u32::from(bits >> 10) & 31, u32::from(bits) & 0x3ff);
    match exponent {
        0 => {
            // Below the normal range: fraction·2⁻²⁴, exact in f32.
            let magnitude = fraction as f32 * (1.0 / 16_777_216.0);
            f32::from_bits(sign | magnitude.to_bits())
        }
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

/// The nearest number (ties to even); infinite from 65520 on.
pub(crate) fn from_f32(x: f32) -> u16 {
    let sign = (x.to_bits() >> 16) as u16 & 0x8000;
    let magnitude = x.abs();
    if magnitude.is_nan() {
        return sign | 0x7e00;
    }
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    if magnitude < f32::from_bits(113 << 23) {
        // Below the normal range, 2⁻¹⁴: whole multiples of 2⁻²⁴.
        return sign | (magnitude * 16_777_216.0).round_ties_even() as u16;
    }
    let bits = magnitude.to_bits();
    // A carry goes into the exponent, as it should.
    let rounded = bits + 0xfff + (bits >> 13 & 1);
    sign | ((rounded >> 13) - (112 << 10)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives() {
        for bits in 0..=u16::MAX {
            let x = to_f32(bits);
            if x.is_nan() {
                assert!(to_f32(from_f32(x)).is_nan());
            } else {
                assert_eq!(from_f32(x), bits, "{x}");
            }
        }
        assert_eq!(to_f32(0x3c00), 1.0);
        assert_eq!(to_f32(0xc500), -5.0);
        assert_eq!(to_f32(0x0001), 2.0f32.powi(-24));
        assert_eq!(to_f32(0x7bff), 65504.0);
    }

    #[test]
    fn rounds_to_the_nearest_and_ties_to_even() {
        // Halfway between every two neighbours, and just beside.
        for bits in 0..0x7bff_u16 {
            let (low, high) = (to_f32(bits), to_f32(bits + 1));
            let middle = low + (high - low) / 2.0;
            assert_eq!(from_f32(middle), bits + (bits & 1), "{middle}");
            assert_eq!(from_f32(f32::from_bits(middle.to_bits() - 1)), bits);
            assert_eq!(from_f32(f32::from_bits(middle.to_bits() + 1)), bits + 1);
        }
        assert_eq!(from_f32(65519.9), 0x7bff);
        assert_eq!(from_f32(65520.0), 0x7c00);
        assert_eq!(from_f32(-1e30), 0xfc00);
    }
}
