//! Event files for TensorBoard: the numbers of `metrics.jsonl` as scalars.
//!
//! The file is a function of the lines of metrics: when a run is resumed, it is written again from those that are kept,
//! so that no step is there twice and a record that a kill cut short is gone.
//!
//! A record of the file is `length (8 bytes), checksum of it (4), data, checksum of these (4)`, little-endian, and the
//! data is one protobuf message `Event { wall_time = 1, step = 2, file_version = 3, summary = 5 }` with
//! `Summary { value = 1 }`, `Value { tag = 1, simple_value = 2 }`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::atomic::write_file;
use super::metrics::{EvalRecord, Record, TrainRecord};
use crate::error::{Error, Result};

/// TensorBoard looks for `tfevents` in names.
pub(crate) const FILE: &str = "events.out.tfevents.dss";

/// The file of a running training.
pub(crate) struct EventFile {
    path: PathBuf,
    file: File,
    /// Bytes of complete records.
    bytes: u64,
    /// Seconds since 1970 when the run would have begun without pauses.
    begin: f64,
}

impl EventFile {
    /// Writes a file with the records so far.
    pub(crate) fn create(path: &Path, records: &[Record]) -> Result<Self> {
        let seconds = records.last().map_or(0.0, Record::seconds);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64());
        let begin = now - seconds;
        let mut bytes = framed(&version_event(begin));
        for record in records {
            bytes.extend(framed(&event(record, begin)));
        }
        write_file(path, &bytes)?;
        let file = OpenOptions::new().append(true).open(path);
        let file = file.map_err(Error::io("cannot write", path))?;
        Ok(Self { path: path.into(), file, bytes: bytes.len() as u64, begin })
    }

    /// Adds a record, or leaves the file as it was.
    pub(crate) fn append(&mut self, record: &Record) -> Result<()> {
        let bytes = framed(&event(record, self.begin));
        if let Err(error) = self.file.write_all(&bytes) {
            let _ = self.file.set_len(self.bytes);
            return Err(Error::io("cannot write", &self.path)(error));
        }
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// What every file begins with.
fn version_event(begin: f64) -> Vec<u8> {
    let mut out = Vec::new();
    put_double(&mut out, 1, begin);
    put_bytes(&mut out, 3, b"brain.Event:2");
    out
}

fn event(record: &Record, begin: f64) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, value) in scalars(record) {
        let mut scalar = Vec::new();
        put_bytes(&mut scalar, 1, tag.as_bytes());
        put_varint(&mut scalar, 2 << 3 | 5);
        scalar.extend((value as f32).to_le_bytes());
        put_bytes(&mut summary, 1, &scalar);
    }
    let step = match record {
        Record::Train(record) => record.step,
        Record::Val(record) | Record::Test(record) => record.step,
    };
    let mut out = Vec::new();
    put_double(&mut out, 1, begin + record.seconds());
    put_varint(&mut out, 2 << 3);
    put_varint(&mut out, step);
    put_bytes(&mut out, 5, &summary);
    out
}

/// The numbers of a line, by their names in TensorBoard.
fn scalars(record: &Record) -> Vec<(String, f64)> {
    let (split, all) = match record {
        Record::Train(TrainRecord { loss, accuracy, lr, samples_per_s, epoch, .. }) => {
            let all = vec![
                ("loss", Some(*loss)),
                ("accuracy", *accuracy),
                ("lr", Some(*lr)),
                ("samples_per_s", Some(*samples_per_s)),
                ("epoch", Some(*epoch as f64)),
            ];
            ("train", all)
        }
        Record::Val(record) => ("val", scores(record)),
        Record::Test(record) => ("test", scores(record)),
    };
    let all = all.into_iter().filter_map(|(name, value)| Some((format!("{split}/{name}"), value?)));
    all.collect()
}

fn scores(record: &EvalRecord) -> Vec<(&'static str, Option<f64>)> {
    let scores = &record.scores;
    vec![
        ("loss", Some(scores.loss)),
        ("accuracy", scores.accuracy),
        ("mse", scores.mse),
        ("mae", scores.mae),
        ("bits", scores.bits),
    ]
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_double(out: &mut Vec<u8>, field: u64, value: f64) {
    put_varint(out, field << 3 | 1);
    out.extend(value.to_le_bytes());
}

/// A record of the file.
fn framed(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut out = length.to_vec();
    out.extend(masked(crc32c(&length)).to_le_bytes());
    out.extend_from_slice(data);
    out.extend(masked(crc32c(data)).to_le_bytes());
    out
}

/// Checksums of data that has checksums in it are not trusted as they are.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bit by bit: the records are short.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(step: u64) -> Record {
        Record::Train(TrainRecord {
            step,
            epoch: 1,
            loss: 0.5,
            accuracy: None,
            lr: 0.01,
            samples_per_s: 10.0,
            seconds: step as f64,
            peak_mb: None,
        })
    }

    /// The data of each record, after its checksums were looked at.
    fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let length: [u8; 8] = bytes[..8].try_into().unwrap();
            assert_eq!(bytes[8..12], masked(crc32c(&length)).to_le_bytes());
            let end = 12 + u64::from_le_bytes(length) as usize;
            let data = bytes[12..end].to_vec();
            assert_eq!(bytes[end..end + 4], masked(crc32c(&data)).to_le_bytes());
            all.push(data);
            bytes = &bytes[end + 4..];
        }
        all
    }

    #[test]
    fn known_checksums() {
        // RFC 3720, B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn an_event_by_hand() {
        let mut expected = vec![0x09];
        expected.extend(107.0f64.to_le_bytes());
        expected.extend([0x10, 7, 0x2a]);
        let event = event(&train(7), 100.0);
        assert_eq!(event[..expected.len()], expected);
        let loss =
            [0x0a, 17, 0x0a, 10, b't', b'r', b'a', b'i', b'n', b'/', b'l', b'o', b's', b's', 0x15];
        assert_eq!(event[expected.len() + 1..][..loss.len()], loss);
        assert_eq!(event[expected.len() + 1 + loss.len()..][..4], 0.5f32.to_le_bytes());
    }

    #[test]
    fn a_resumed_file_has_every_step_once() {
        let path = std::env::temp_dir().join(format!("dss-events-{}", std::process::id()));
        let mut file = EventFile::create(&path, &[]).unwrap();
        for step in 1..=4 {
            file.append(&train(step)).unwrap();
        }
        drop(file);
        let whole = std::fs::read(&path).unwrap();
        // Killed in the middle of a record, and resumed from the second line.
        std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let mut file = EventFile::create(&path, &[train(1), train(2)]).unwrap();
        file.append(&train(3)).unwrap();
        let found = records(&std::fs::read(&path).unwrap());
        assert_eq!(found.len(), 4);
        assert!(found[0].ends_with(b"brain.Event:2"));
        assert_eq!(found[1..].iter().map(|data| data[10]).collect::<Vec<_>>(), [1, 2, 3]);
        std::fs::remove_file(path).unwrap();
    }
}
