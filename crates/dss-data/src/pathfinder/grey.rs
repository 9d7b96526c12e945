//! Grey pictures as PNG files.

use std::io::{BufRead, Cursor};
use std::path::Path;

use png::{BitDepth, ColorType, Decoder, Encoder, Limits, Transformations};

use crate::image::grey;
use crate::{Error, Result, io};

/// How every PNG file starts.
const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Memory for the decoding of one picture, 256 × 256 at most.
const MEMORY: usize = 4 << 20;

/// The grey levels of the picture in a PNG file; `None` if it is another kind of file.
pub(crate) fn read(path: &Path, size: usize) -> Result<Option<Vec<u8>>> {
    let is_png =
        io::open(path)?.fill_buf().map_err(Error::io("read", path))?.starts_with(SIGNATURE);
    let levels = is_png.then(|| io::read(path).map(|bytes| decode(&bytes, size))).transpose()?;
    levels.transpose().map_err(|what| Error::content(path, what))
}

/// The grey levels of a picture of `size` × `size` pixels; otherwise what is wrong with it.
///
/// Colours become grey by the weights of ITU-R 601 in 16-bit fixed point, as Pillow does it; 16-bit levels keep their
/// upper byte; transparency is ignored.
pub(super) fn decode(bytes: &[u8], size: usize) -> std::result::Result<Vec<u8>, String> {
    if bytes.is_empty() {
        return Err("an empty file, not a PNG picture".into());
    }
    let damaged = |e: png::DecodingError| format!("not a whole PNG picture ({e})");
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: MEMORY });
    decoder.set_transformations(Transformations::normalize_to_color8());
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let (width, height) = decoder.read_header_info().map_err(damaged)?.size();
    if [width, height].map(|n| n as usize) != [size, size] {
        return Err(format!("{width} × {height} pixels, but {size} × {size} are expected"));
    }
    let mut reader = decoder.read_info().map_err(damaged)?;
    let mut levels = vec![0; reader.output_buffer_size().ok_or("too large")?];
    let frame = reader.next_frame(&mut levels).map_err(damaged)?;
    reader.finish().map_err(damaged)?;
    levels.truncate(frame.buffer_size());
    let rgb = |p: &[u8]| grey([p[0], p[1], p[2]]);
    Ok(match frame.color_type {
        ColorType::Grayscale => levels,
        ColorType::GrayscaleAlpha => levels.chunks_exact(2).map(|p| p[0]).collect(),
        ColorType::Rgb => levels.chunks_exact(3).map(rgb).collect(),
        ColorType::Rgba => levels.chunks_exact(4).map(rgb).collect(),
        ColorType::Indexed => return Err("a palette that cannot be read".into()),
    })
}

/// The PNG file of `size` × `size` grey levels.
pub(crate) fn encode(levels: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, size as u32, size as u32);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(levels));
    written.expect("a picture of the right size can be written to memory");
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn picture() -> Vec<u8> {
        (0..64u8).map(|i| i * 4).collect()
    }

    fn png(color: ColorType, depth: BitDepth, levels: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, 2, 2);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if color == ColorType::Indexed {
            encoder.set_palette(vec![0, 0, 0, 255, 0, 0, 255, 255, 255]);
        }
        encoder.write_header().unwrap().write_image_data(levels).unwrap();
        bytes
    }

    #[test]
    fn decoding_undoes_encoding() {
        assert_eq!(decode(&encode(&picture(), 8), 8).unwrap(), picture());
        let error = decode(&encode(&picture(), 8), 32).unwrap_err();
        assert_eq!(error, "8 × 8 pixels, but 32 × 32 are expected");
    }

    #[test]
    fn other_kinds_of_pictures_become_grey() {
        let eight = BitDepth::Eight;
        let cases = [
            (png(ColorType::GrayscaleAlpha, eight, &[1, 9, 2, 9, 3, 0, 4, 9]), [1, 2, 3, 4]),
            (
                png(ColorType::Rgb, eight, &[255, 0, 0, 0, 255, 0, 0, 0, 255, 7, 7, 7]),
                [76, 150, 29, 7],
            ),
            (
                png(
                    ColorType::Rgba,
                    eight,
                    &[255, 0, 0, 0, 0, 255, 0, 9, 0, 0, 255, 1, 7, 7, 7, 0],
                ),
                [76, 150, 29, 7],
            ),
            (png(ColorType::Grayscale, BitDepth::Sixteen, &[1, 9, 2, 9, 3, 0, 4, 9]), [1, 2, 3, 4]),
            (
                png(ColorType::Grayscale, BitDepth::One, &[0b1000_0000, 0b0100_0000]),
                [255, 0, 0, 255],
            ),
            (png(ColorType::Indexed, eight, &[0, 1, 2, 1]), [0, 76, 255, 76]),
        ];
        for (bytes, expected) in cases {
            assert_eq!(decode(&bytes, 2).unwrap(), expected);
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        let whole = encode(&picture(), 8);
        assert!(decode(b"", 8).unwrap_err().contains("empty file"));
        for cut in 1..whole.len() {
            assert!(decode(&whole[..cut], 8).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_bomb_is_refused_by_its_header() {
        let mut bytes = encode(&picture(), 8);
        bytes[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
        assert!(decode(&bytes, 8).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes, 8);
            let _ = decode(&[SIGNATURE, &bytes].concat(), 8);
        }

        #[test]
        fn damage_is_noticed(at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut bytes = encode(&picture(), 8);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            // A checksum covers every byte; what still decodes is the same picture.
            if let Ok(levels) = decode(&bytes, 8) {
                prop_assert_eq!(levels, picture());
            }
        }
    }
}
