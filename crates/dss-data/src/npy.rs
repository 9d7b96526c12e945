//! NumPy's `.npy` files: versions 1 to 3 are read as f32, version 1 is written.

use std::path::Path;

use crate::{Error, Result, io};

/// The first bytes of every file.
pub const MAGIC: &[u8] = b"\x93NUMPY";

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
    from_bytes(&io::read(path)?).map_err(|what| Error::content(path, what))
}

/// The array of a file's bytes; `Err` says what is wrong with them.
pub fn from_bytes(bytes: &[u8]) -> std::result::Result<Npy, String> {
    let npy = parse(bytes)?;
    match npy.data.iter().position(|v| !v.is_finite()) {
        None => Ok(npy),
        Some(i) => {
            let (place, found) = (unravel(i, &npy.shape), npy.data[i]);
            Err(format!("element {place:?} is {found}; every number must be finite in f32"))
        }
    }
}

/// The bytes of a file of f64, little-endian, last dimension innermost.
pub fn to_bytes(shape: &[usize], data: &[f64]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
    file("<f8", false, &format!("({})", sizes.trim_end()), &bytes)
}

fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    // The numbers begin at a multiple of 64; a line end closes the header.
    let used = MAGIC.len() + 4 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', used.next_multiple_of(64) - used));
    header.push('\n');
    let mut bytes = [MAGIC, &[1, 0]].concat();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
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
    let rest =
        bytes.strip_prefix(MAGIC).ok_or("not an .npy file: it does not start with \\x93NUMPY")?;
    let cut = || "ends within its header; write the file again".to_owned();
    let (&[major, _minor], rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
    let (length, rest) = match major {
        1 => rest.split_first_chunk::<2>().map(|(n, r)| (u16::from_le_bytes(*n).into(), r)),
        2 | 3 => rest.split_first_chunk::<4>().map(|(n, r)| (u32::from_le_bytes(*n), r)),
        _ => {
            return Err(format!(".npy version {major} is not supported; only versions 1 to 3 are"));
        }
    }
    .ok_or_else(cut)?;
    let (header, data) = rest.split_at_checked(length as usize).ok_or_else(cut)?;
    let header = String::from_utf8_lossy(header);
    let fortran = match value(&header, "fortran_order")? {
        "False" => false,
        "True" => true,
        other => return Err(format!("its header says fortran_order {other}")),
    };
    let shape = shape(value(&header, "shape")?)?;
    let numbers = numbers(value(&header, "descr")?.trim_matches(['\'', '"']), data)?;
    let wanted = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if wanted != Some(numbers.len()) {
        let found = numbers.len();
        return Err(format!(
            "its shape is {shape:?}, but {found} numbers follow; write the file again"
        ));
    }
    let data = if fortran { from_fortran_order(&numbers, &shape) } else { numbers };
    Ok(Npy { shape, data })
}

/// Numbers whose first dimension is innermost, the last one innermost instead.
fn from_fortran_order(numbers: &[f32], shape: &[usize]) -> Vec<f32> {
    let place = |i: usize| {
        let (mut at, mut step) = (0, 1);
        for (index, size) in unravel(i, shape).into_iter().zip(shape) {
            at += index * step;
            step *= size;
        }
        at
    };
    (0..numbers.len()).map(|i| numbers[place(i)]).collect()
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
        file(descr, false, shape, data)
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
    fn written_values_are_read_back() {
        let data = [1.0, 2.0, 3.0, 4.0, 5.0, -6.5];
        let bytes = to_bytes(&[2, 3], &data);
        assert_eq!(bytes.len() % 64, 6 * 8);
        let npy = from_bytes(&bytes).unwrap();
        assert_eq!((npy.shape, npy.data), (vec![2, 3], data.map(|x| x as f32).to_vec()));
        assert_eq!(from_bytes(&to_bytes(&[], &[7.0])).unwrap().shape, [0usize; 0]);
    }

    #[test]
    fn fortran_order() {
        // x[i, j, k] = 100 i + 10 j + k, the first index innermost.
        let [a, b, c] = [2i32, 3, 4];
        let mut data = Vec::new();
        for k in 0..c {
            for j in 0..b {
                (0..a).for_each(|i| data.extend((100 * i + 10 * j + k).to_le_bytes()));
            }
        }
        let npy = from_bytes(&file("<i4", true, "(2, 3, 4)", &data)).unwrap();
        let expected = (0..a)
            .flat_map(|i| (0..b).flat_map(move |j| (0..c).map(move |k| 100 * i + 10 * j + k)));
        assert_eq!(npy.data, expected.map(|x: i32| x as f32).collect::<Vec<_>>());
    }

    #[test]
    fn faults_are_named() {
        let good = npy_f32("(2,)", &[1.0, 2.0]);
        let cases = [
            (b"PK".to_vec(), "not an .npy file"),
            (good[..20].to_vec(), "ends within its header"),
            (good[..good.len() - 1].to_vec(), "ends within a number"),
            (good[..good.len() - 4].to_vec(), "shape is [2], but 1 numbers"),
            (npy_bytes("<c8", "(1,)", &[0; 8]), "type <c8"),
            (npy_bytes("|O", "(1,)", &[0; 8]), "type |O"),
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
        assert!(error.contains("x.npy: element [1, 0] is NaN"), "{error}");
    }
}
