//! Which examples train, and which are held out.

use super::*;

#[test]
fn splits_follow_content_not_order() {
    let folder = Folder::new();
    let text = numbers_csv(false);
    let mut lines: Vec<&str> = text.lines().collect();
    let first = load(config(&folder.write("x.csv", lines.join("\n")).path("x.csv")));
    lines.extend(["up,7,0.5,-7", "down,4,0.5,-4"]);
    let first_doubled = load(config(&folder.write("x.csv", lines.join("\n")).path("x.csv")));
    lines.reverse();
    let second = load(config(&folder.write("x.csv", lines.join("\n")).path("x.csv")));
    assert_eq!(examples(&first_doubled), examples(&second), "one content, two labels");
    lines.drain(..2);
    let second = load(config(&folder.write("x.csv", lines.join("\n")).path("x.csv")));
    assert_eq!(examples(&first), examples(&second));
    assert_eq!(first.split_hash, second.split_hash);
    let again = load(config(&folder.path("x.csv")));
    assert_eq!(second.split_hash, again.split_hash);
    let other = load(FilesConfig { split_seed: 1, ..config(&folder.path("x.csv")) });
    assert_ne!(second.split_hash, other.split_hash);
}

/// Names, order, gzip and line ends are not in the hash; contents, labels and the split are.
#[test]
fn the_split_hash_is_that_of_the_contents() {
    let folder = Folder::new();
    let table = numbers_csv(true);
    let hash =
        |name: &str, bytes: &[u8]| load(config(&folder.write(name, bytes).path(name))).split_hash;
    let first = hash("x.csv", table.as_bytes());
    let (header, rows) = table.split_once('\n').unwrap();
    let mut reversed: Vec<&str> = rows.lines().collect();
    reversed.reverse();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(table.as_bytes()).unwrap();
    for (name, bytes) in [
        ("renamed.csv", table.clone().into_bytes()),
        ("reversed.csv", format!("{header}\n{}\n", reversed.join("\n")).into_bytes()),
        ("windows.csv", table.replace('\n', "\r\n").into_bytes()),
        ("packed.csv.gz", gz.finish().unwrap()),
        ("semicolons.csv", table.replace(',', ";").into_bytes()),
        ("commas.csv", table.replace(',', ";").replace('.', ",").into_bytes()),
        ("no-header.csv", rows.as_bytes().to_vec()),
    ] {
        assert_eq!(hash(name, &bytes), first, "{name}");
    }
    assert_ne!(hash("other.csv", table.replace("up,4,", "up,5,").as_bytes()), first);
    assert_ne!(hash("label.csv", table.replace("up,4,", "down,4,").as_bytes()), first);
}

/// Version 0.1 hashed the names, too: its runs are recognised while the files have their old names.
#[test]
fn the_split_hash_of_version_0_1_is_recognised() {
    let folder = Folder::new();
    let of_0_1 = FilesConfig { val_fraction: 0.1, test_fraction: 0.1, ..FilesConfig::default() };
    let load = |name: &str| {
        folder.write(name, numbers_csv(true));
        load(FilesConfig {
            scale: Scale::None,
            path: config(&folder.path(name)).path,
            ..of_0_1.clone()
        })
    };
    let task = load("x.csv");
    assert!(task.has_splits(HASH_OF_0_1) && task.has_splits(&task.split_hash));
    assert_ne!(task.split_hash, HASH_OF_0_1);
    assert!(!load("y.csv").has_splits(HASH_OF_0_1), "it has the name in it");
}

/// What version 0.1 computed for `numbers_csv(true)` as `x.csv`.
const HASH_OF_0_1: &str = "ffd75de6317309495029b48ab397acf7b1d81e0b53c44e6a5f79388a5953dc09";

#[test]
fn a_class_that_training_lacks_is_refused() {
    let folder = Folder::new();
    folder
        .write("train.csv", numbers_csv(true))
        .write("test.csv", "label,a,b,c\nnew,1,2,3\nup,1,2,3\n");
    let message = error(config(folder.0.path()));
    let expected = "test has classes that train lacks, such as \"new\" (1 sequence in all)";
    assert!(message.contains(expected), "{message}");
}
