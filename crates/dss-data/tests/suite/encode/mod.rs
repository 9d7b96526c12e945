//! The bytes of sound files and archives, for tests.

use std::io::Write;

/// 16-bit WAV, channels interleaved.
pub fn wav(samples: &[i16], rate: u32, channels: u16) -> Vec<u8> {
    let size = 2 * samples.len() as u32;
    let mut bytes = b"RIFF".to_vec();
    bytes.extend((36 + size).to_le_bytes());
    bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0");
    bytes.extend(channels.to_le_bytes());
    bytes.extend(rate.to_le_bytes());
    bytes.extend((rate * 2 * u32::from(channels)).to_le_bytes());
    bytes.extend((2 * channels).to_le_bytes());
    bytes.extend(b"\x10\0data");
    bytes.extend(size.to_le_bytes());
    bytes.extend(samples.iter().flat_map(|s| s.to_le_bytes()));
    bytes
}

/// 16-bit mono FLAC, its samples not compressed; fewer than 128 blocks of 4096.
pub fn flac(samples: &[i16], rate: u32) -> Vec<u8> {
    const BLOCK: usize = 4096;
    let mut bytes = b"fLaC\x80\0\0\x22\x10\0\x10\0\0\0\0\0\0\0".to_vec();
    // 20 bits of rate, 3 of channels - 1, 5 of bits - 1, 36 of samples, and no sum.
    let packed = u64::from(rate) << 44 | 15 << 36 | samples.len() as u64;
    bytes.extend(packed.to_be_bytes());
    bytes.extend([0; 16]);
    for (number, block) in samples.chunks(BLOCK).enumerate() {
        let mut frame = flac_frame_head(number as u8, block.len() as u16);
        frame.push(0x02);
        frame.extend(block.iter().flat_map(|s| s.to_be_bytes()));
        frame.extend(sum(&frame, 0x8005, 16).to_be_bytes());
        bytes.extend(frame);
    }
    bytes
}

/// The head of a frame of one channel of 16 bits, up to its own sum.
pub fn flac_frame_head(number: u8, samples: u16) -> Vec<u8> {
    let mut head = vec![0xff, 0xf8, 0x70, 0x08, number];
    head.extend((samples - 1).to_be_bytes());
    head.push(sum(&head, 0x07, 8) as u8);
    head
}

/// A cyclic redundancy check, the highest bit first.
fn sum(bytes: &[u8], polynomial: u16, bits: u32) -> u16 {
    let mask = if bits == 8 { 0xff } else { 0xffff };
    bytes.iter().fold(0, |mut sum, &byte| {
        sum ^= u16::from(byte) << (bits - 8);
        for _ in 0..8 {
            let carry = sum >> (bits - 1) & 1 == 1;
            sum = sum << 1 & mask;
            sum ^= if carry { polynomial } else { 0 };
        }
        sum
    })
}

/// A tar archive of (name, bytes).
pub fn tar(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, name, &bytes[..]).unwrap();
    }
    tar.into_inner().unwrap()
}

/// The bytes, gzipped.
pub fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}
