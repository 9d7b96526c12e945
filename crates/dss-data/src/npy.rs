//! NumPy's `.npy` files, versions 1 to 3: numbers in C order, read as f32.

use std::path::Path;

use crate::{Error, Result, io};

/// An array of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Npy {
    /// Size of every dimension.
    pub shape: Vec<usize>,
    /// The numbers, last dimension innermost.
    pub data: Vec<f32>,
}

/// Reads an array; gzipped files are unpacked. NaN and infinite numbers are refused.
pub fn read_npy(path: &Path) -> Result<Npy> {
    let npy = parse(&io::read(path)?).map_err(|what| Error::content(path, what))?;
    if let Some(i) = npy.data.iter().position(|v| !v.is_finite()) {
        let place = format!(", element {:?}", unravel(i, &npy.shape));
        let what = format!("is {}; every number must be finite in f32", npy.data[i]);
        return Err(Error::Content { path: path.to_owned(), place, what });
    }
    Ok(npy)
}

/// Place of the flat index `i` along every dimension.
fn unravel(mut i: usize, shape: &[usize]) -> Vec<usize> {
    let mut place: Vec<usize> = Vec::with_capacity(shape.len());
    for &d in shape.iter().rev() {
        place.push(i % d);
        i /= d;
    }
    place.reverse();
    place
}

fn parse(bytes: &[u8]) -> std::result::Result<Npy, String> {
    let rest = bytes
        .strip_prefix(b"\x93NUMPY")
        .ok_or("not an .npy file: it does not start with \\x93NUMPY")?;
    let cut = || "ends within its header; write the file again".to_owned();
    let (&[major, _minor], rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
    let (length, rest) = match major {
        1 => rest.split_first_chunk::<2>().map(|(n, r)| (u16::from_le_bytes(*n).into(), r)),
        2 | 3 => rest.split_first_chunk::<4>().map(|(n, r)| (u32::from_le_bytes(*n), r)),
        _ => return Err(format!(".npy version {major} is not known; versions 1 to 3 are read")),
    }
    .ok_or_else(cut)?;
    let (header, data) = rest.split_at_checked(length as usize).ok_or_else(cut)?;
    let header = String::from_utf8_lossy(header);
    if value(&header, "fortran_order")? != "False" {
        return Err("is in Fortran order; save numpy.ascontiguousarray(x) instead".into());
    }
    let shape = shape(value(&header, "shape")?)?;
    let numbers = numbers(value(&header, "descr")?.trim_matches(['\'', '"']), data)?;
    let wanted = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if wanted != Some(numbers.len()) {
        let found = numbers.len();
        return Err(format!(
            "its shape is {shape:?}, but {found} numbers follow; write the file again"
        ));
    }
    Ok(Npy { shape, data: numbers })
}

/// The text of one entry of the header, which is a Python dictionary with three known keys.
fn value<'a>(header: &'a str, key: &str) -> std::result::Result<&'a str, String> {
    let find = || {
        let (_, rest) = header.split_once(&format!("'{key}':"))?;
        let rest = rest.trim_start();
        let end = match rest.as_bytes().first()? {
            b'(' => rest.find(')')? + 1,
            b'[' => rest.find(']')? + 1,
            _ => rest.find([',', '}'])?,
        };
        Some(rest[..end].trim())
    };
    find().ok_or_else(|| format!("its header has no `{key}`: {header}"))
}

fn shape(text: &str) -> std::result::Result<Vec<usize>, String> {
    let inner = text.trim_matches(['(', ')']);
    let sizes = inner.split(',').map(str::trim).filter(|s| !s.is_empty());
    sizes
        .map(str::parse)
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| format!("odd shape {text}"))
}

/// All numbers of a type such as `<f4`.
fn numbers(descr: &str, data: &[u8]) -> std::result::Result<Vec<f32>, String> {
    macro_rules! read {
        ($($little:literal | $big:literal => $type:ty),* $(,)?) => {
            match descr {
                $($little | $big => {
                    let (items, rest) = data.as_chunks::<{ size_of::<$type>() }>();
                    if !rest.is_empty() {
                        return Err("ends within a number; write the file again".into());
                    }
                    let read = if descr == $big { <$type>::from_be_bytes } else { <$type>::from_le_bytes };
                    Ok(items.iter().map(|&item| read(item) as f32).collect())
                })*
                "|b1" => Ok(data.iter().map(|&b| (b != 0).into()).collect()),
                _ => Err(format!(
                    "holds elements of type {descr}; booleans, integers, float32 and float64 are read: \
                     save x.astype(\"float32\")"
                )),
            }
        };
    }
    read!(
        "<f4" | ">f4" => f32, "<f8" | ">f8" => f64,
        "|i1" | ">i1" => i8, "<i2" | ">i2" => i16, "<i4" | ">i4" => i32, "<i8" | ">i8" => i64,
        "|u1" | ">u1" => u8, "<u2" | ">u2" => u16, "<u4" | ">u4" => u32, "<u8" | ">u8" => u64,
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The bytes of a version 1 file.
    pub(crate) fn npy_bytes(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let mut header =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        header.push_str(&" ".repeat(63 - (10 + header.len()) % 64));
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    /// The bytes of a file of f32.
    pub(crate) fn npy_f32(shape: &str, data: &[f32]) -> Vec<u8> {
        let data: Vec<u8> = data.iter().flat_map(|v| v.to_le_bytes()).collect();
        npy_bytes("<f4", shape, &data)
    }

    #[test]
    fn shapes_and_types() {
        let npy = parse(&npy_f32("(2, 3)", &[1.0, 2.0, 3.0, 4.0, 5.0, -6.5])).unwrap();
        assert_eq!((npy.shape, npy.data[5]), (vec![2, 3], -6.5));
        let eight: Vec<u8> = (-3i64).to_le_bytes().into();
        assert_eq!(parse(&npy_bytes("<i8", "(1,)", &eight)).unwrap().data, [-3.0]);
        assert_eq!(parse(&npy_bytes(">u2", "(1,)", &[1, 2])).unwrap().data, [258.0]);
        assert_eq!(parse(&npy_bytes("<u2", "(1,)", &[1, 2])).unwrap().data, [513.0]);
        assert_eq!(parse(&npy_bytes("|u1", "(2, 1)", &[7, 255])).unwrap().data, [7.0, 255.0]);
        assert_eq!(parse(&npy_bytes("|b1", "(2,)", &[0, 1])).unwrap().data, [0.0, 1.0]);
        assert_eq!(parse(&npy_bytes("<f8", "()", &0.5f64.to_le_bytes())).unwrap().data, [0.5]);
        let mut second = npy_bytes("|i1", "(1,)", &[0xff]);
        second[6] = 2;
        second.splice(10..10, [0, 0]);
        assert_eq!(parse(&second).unwrap().data, [-1.0]);
    }

    #[test]
    fn faults_are_named() {
        let good = npy_f32("(2,)", &[1.0, 2.0]);
        let fortran = String::from_utf8_lossy(&good[10..]).replace("False", "True ");
        let cases = [
            (b"PK".to_vec(), "not an .npy file"),
            (good[..20].to_vec(), "ends within its header"),
            (good[..good.len() - 1].to_vec(), "ends within a number"),
            (good[..good.len() - 4].to_vec(), "shape is [2], but 1 numbers"),
            (npy_bytes("<c8", "(1,)", &[0; 8]), "type <c8"),
            (npy_bytes("|O", "(1,)", &[0; 8]), "type |O"),
            ([&good[..10], fortran.as_bytes()].concat(), "Fortran order"),
        ];
        for (bytes, part) in cases {
            let error = parse(&bytes).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn numbers_must_be_finite() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npy");
        std::fs::write(&path, npy_f32("(2, 2)", &[1.0, 2.0, f32::NAN, 4.0])).unwrap();
        let error = read_npy(&path).unwrap_err().to_string();
        assert!(error.contains("x.npy, element [1, 0]: is NaN"), "{error}");
    }
}
