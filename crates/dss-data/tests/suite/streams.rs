//! A file read as a whole and the same bytes as they arrive give the same input.

use std::fs;
use std::path::Path;

use dss_data::audio::{Coding, SoundReader, mono};
use dss_data::delimited::RowReader;
use dss_data::{Encoder, Input, ReadFile};
use dss_format::feed::Feed;

/// The bytes of a file in pieces, as `dss stream` takes them.
fn stream(encoder: &Encoder, path: &Path, piece: usize) -> Result<Input, String> {
    let bytes = fs::read(path).unwrap();
    let (mut values, mut tokens) = (Vec::new(), Vec::new());
    match encoder.feed()? {
        Feed::Sound(feed) => {
            let (mut reader, mut samples) = (SoundReader::new(), Vec::new());
            bytes.chunks(piece).try_for_each(|piece| reader.push(piece, &mut samples))?;
            reader.finish(&mut samples)?;
            let channels = reader.format().unwrap().channels;
            values.extend(mono(&samples, channels).map(|x| feed.value(x)));
            Ok(Input::Values(values))
        }
        Feed::Numbers(mut feed) => {
            let mut reader = RowReader::for_dialect(feed.shape().dialect, path);
            for mut piece in bytes.chunks(piece) {
                while let Some(row) = reader.next(&mut piece)? {
                    feed.row(row.line, &row.text().unwrap(), &mut values)
                        .map_err(|fault| fault.to_string())?;
                }
            }
            while let Some(row) = reader.finish()? {
                feed.row(row.line, &row.text().unwrap(), &mut values)
                    .map_err(|fault| fault.to_string())?;
            }
            Ok(Input::Values(values))
        }
        Feed::Tokens(mut feed) => {
            let text = |fault: dss_format::feed::Fault| fault.to_string();
            bytes
                .chunks(piece)
                .try_for_each(|piece| feed.push(piece, &mut tokens))
                .map_err(text)?;
            feed.finish(&mut tokens).map_err(text)?;
            tokens.extend(feed.end);
            Ok(Input::Tokens(tokens))
        }
    }
}

/// Both ways, in pieces of several sizes; several sequences one after the other.
#[track_caller]
fn both(encoder: &str, name: &str, bytes: impl AsRef<[u8]>) -> Input {
    let encoder: Encoder = serde_json::from_str(encoder).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    let read = encoder.read(&path).unwrap_or_else(|error| panic!("{error}"));
    let whole = read.into_iter().map(|(_, input)| input).reduce(|a, b| match (a, b) {
        (Input::Values(a), Input::Values(b)) => Input::Values([a, b].concat()),
        (Input::Tokens(a), Input::Tokens(b)) => Input::Tokens([a, b].concat()),
        _ => panic!("two kinds of input"),
    });
    let whole = whole.unwrap();
    for piece in [1, 7, 1 << 16] {
        assert_eq!(stream(&encoder, &path, piece).unwrap(), whole, "{name}, pieces of {piece}");
    }
    whole
}

const SPEECH: &str =
    r#"{"kind":"speech","form":"wave","rate":16000,"mean":[0.25],"divisor":[0.5]}"#;

/// A WAV file of any coding.
fn wav(code: u16, bits: u16, channels: u16, size: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"RIFF\0\0\0\0WAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0".to_vec();
    bytes.extend(code.to_le_bytes());
    bytes.extend(channels.to_le_bytes());
    bytes.extend(16_000u32.to_le_bytes());
    bytes.extend([0; 6]);
    bytes.extend(bits.to_le_bytes());
    bytes.extend(b"data");
    bytes.extend(size.to_le_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn sound() {
    // 1/2, then -1/4, in every coding.
    let expected = Input::Values(vec![0.5, -1.0]);
    let floats = [0.5f32, -0.25].map(f32::to_le_bytes).concat();
    let sixteen = [0, 0x40, 0, 0xe0];
    let codings: [(u16, u16, u16, &[u8]); 6] = [
        (1, 8, 1, &[192, 96]),
        (1, 16, 1, &sixteen),
        (1, 24, 1, &[0, 0, 0x40, 0, 0, 0xe0]),
        (1, 32, 1, &[0, 0, 0, 0x40, 0, 0, 0, 0xe0]),
        (3, 32, 1, &floats),
        (1, 16, 2, &[0, 0x20, 0, 0x60, 0, 0xc0, 0, 0]),
    ];
    for (code, bits, channels, data) in codings {
        let file = wav(code, bits, channels, data.len() as u32, data);
        assert_eq!(both(SPEECH, "a.wav", file), expected, "{code} {bits} {channels}");
    }
    for size in [0, 0x7fff_f000, 0x8000_0000, u32::MAX] {
        assert_eq!(both(SPEECH, "a.wav", wav(1, 16, 1, size, &sixteen)), expected, "{size:#x}");
    }
    assert_eq!(both(SPEECH, "a.flac", crate::encode::flac(&[16_384, -8_192], 16_000)), expected);
    let mut raw = Vec::new();
    SoundReader::raw(Coding::S16, 16_000).push(&sixteen, &mut raw).unwrap();
    assert_eq!(raw, [0.5, -0.25]);
}

#[test]
fn sound_at_another_rate_is_refused() {
    let encoder: Encoder = serde_json::from_str(SPEECH).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slow.wav");
    fs::write(&path, crate::encode::wav(&[1, 2], 8_000, 1)).unwrap();
    let error = encoder.read(&path).unwrap_err().to_string();
    assert!(error.contains("8000 Hz") && error.contains("16000 Hz"), "{error}");
}

const ROWS: &str = r#"{"kind":"files","form":{"numbers":{"channels":1,"scaling":{"mean":[1.0],"sd":[2.0]},
    "rows":true,"stacked":false}},"columns":[{"name":"a","index":1},{"name":"b","index":2}],"len":9,"cut":false}"#;
const STEPS: &str = r#"{"kind":"files","form":{"numbers":{"channels":2,"scaling":null,"rows":false,
    "stacked":false}},"columns":[{"name":"a","index":0},{"name":"b","index":1}],"len":9,"cut":false}"#;

#[test]
fn tables() {
    let rows = Input::Values(vec![2.0, 3.0, 4.0]);
    let steps = Input::Values(vec![5.0, 7.0, 9.0, 1.0]);
    for (separator, name) in
        [(",", "x.csv"), (";", "x.csv"), ("\t", "x.csv"), ("\t", "x.tsv"), (" ", "x.txt")]
    {
        for end in ["\n", "\r\n", "\r"] {
            let table = |rows: &[&str]| rows.join(end).replace(',', separator) + end;
            assert_eq!(
                both(ROWS, name, table(&["5,7", "9,"])),
                rows,
                "{name} {separator:?} {end:?}"
            );
            assert_eq!(both(STEPS, name, table(&["5,7", "", "9,1"])), steps);
            if separator != " " {
                let labelled = table(&["up,5,7", "down,9,"]);
                assert_eq!(both(ROWS, name, labelled), rows);
                assert_eq!(both(ROWS, name, table(&["label,a,b", "1,5,7", "0,9"])), rows);
                assert_eq!(both(STEPS, name, table(&["b,z,a", "7,0,5", "1,0,9"])), steps);
            }
        }
    }
    assert_eq!(both(ROWS, "x.csv", "\"5\",\"7\"\n\"9\",\"\"\n"), rows);
    assert_eq!(both(STEPS, "x.csv", "\"b\",\"two\nlines\",a\n7,x,5\n1,\"y,\"\"z\",9"), steps);
    let comma = ROWS.replace(r#""len":9"#, r#""dialect":{"decimal_comma":true},"len":9"#);
    for table in ["5;7,0\n9,0;\n", "label;a;b\nup;5;7\ndown;9,0\n", "5.0\t7\n9,0\t\n"] {
        assert_eq!(both(&comma, "x.csv", table), rows, "{table:?}");
    }
    let spaces = ROWS.replace(r#""len":9"#, r#""dialect":{"delimiter":" "},"len":9"#);
    assert_eq!(both(&spaces, "x.csv", "up 5 7\ndown 9\n"), rows);
    let adding = r#"{"kind":"value-steps","channels":2,"len":9}"#;
    assert_eq!(both(adding, "x.csv", "5 7\n9 1\n"), steps);
}

#[test]
fn both_readers_refuse_the_same_files() {
    let dir = tempfile::tempdir().unwrap();
    for (encoder, table, part) in [
        (ROWS, "5,7,9,1\n", "line 1: expected 2 cells as in the training, or 3 with a label"),
        (ROWS, "label,a,c\nup,5,7\n", "line 1: expected the columns a, b, found label, a, c"),
        (STEPS, "5,7\r\n9,x\r\n", "line 2, column 2: expected a number, found \"x\""),
        (STEPS, "5,7\n9\n", "line 2, column 2: expected a number"),
        (STEPS, "5,7,9\n", "line 1: expected 2 cells"),
    ] {
        let encoder: Encoder = serde_json::from_str(encoder).unwrap();
        let path = dir.path().join("x.csv");
        fs::write(&path, table).unwrap();
        let read = encoder.read(&path).unwrap_err().to_string();
        assert!(read.contains(part), "{read}");
        let streamed = stream(&encoder, &path, 3).unwrap_err();
        assert!(streamed.contains(part), "{streamed}");
    }
}

#[test]
fn texts() {
    let text = r#"{"kind":"text","alphabet":{"characters":["<pad>","<unk>","<eos>","a","b","\n"]},"len":9}"#;
    let expected = Input::Tokens(vec![3, 5, 4, 1, 2]);
    for end in ["", "\n", "\r\n", "\n\n"] {
        assert_eq!(both(text, "x.txt", format!("a\nb?{end}")), expected, "{end:?}");
    }
    let files = r#"{"kind":"files","form":"bytes","columns":[],"len":9,"cut":false}"#;
    assert_eq!(both(files, "x.txt", "a\n"), Input::Tokens(vec![100, 2]));
    let lm = r#"{"kind":"lm","unit":"char","symbols":["\n","a"],"len":9}"#;
    assert_eq!(
        both(lm, "x.txt", "a\n"),
        Input::Tokens(vec![1, 0]),
        "a line end is to be predicted"
    );
    let listops =
        r#"{"kind":"listops","vocabulary":["<pad>","<unk>","<eos>","X","[MAX","2","9"],"len":9}"#;
    let tree = "( ( ( [MAX 2 ) 9 ) ] )";
    for file in [
        format!("{tree}\n"),
        format!("{tree}\t9"),
        format!("9\t{tree}\r\n"),
        format!("\u{feff}Source\tTarget\r\n{tree}\t9\r\n"),
        "[MAX 2 9 ]\t9\n".to_owned(),
        "[MAX\t2 9 ]\n".to_owned(),
    ] {
        assert_eq!(both(listops, "x.tsv", &file), Input::Tokens(vec![4, 5, 6, 3, 2]), "{file:?}");
    }
    assert_eq!(both(listops, "x.tsv", "9\t2\n"), Input::Tokens(vec![6, 2]), "the label is last");
}
