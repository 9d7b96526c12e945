//! Every fault with its place.

use super::*;

#[test]
fn faults_have_a_place() {
    let folder = Folder::new();
    let good = numbers_csv(true);
    let path = folder.path("x.csv");
    let numbers = |content: String| {
        folder.write("x.csv", content);
        error(FilesConfig { input: InputChoice::Numbers, ..config(&path) })
    };
    let cases = [
        (good.replace("up,4,0.5", "up,4,nan"), "x.csv, line 6, column 3: is NaN"),
        (good.replace("up,4,0.5", "up,4,1e99"), "x.csv, line 6, column 3: is inf"),
        (good.replace("up,4,0.5", "up,4,x"), "line 6, column 3: expected a number, found \"x\""),
        (good.replace("up,4,0.5", "up,4,"), "line 6, column 3: expected a number, found \"\""),
        (good.replace("up,4,0.5", ",4,0.5"), "line 6, column 1: the label is missing"),
        (good.replace("up,4,0.5,-4", "up"), "line 6: no numbers"),
        (good.replace("down", "up"), "only one class (\"up\")"),
        ("label,a\nup,1\ndown,2\n".into(), "too few sequences (2)"),
        (String::new(), "the table is empty"),
        ("label,a\n".into(), "a header but no rows"),
        ("label\nup\ndown\n".into(), "nothing is left besides the label"),
        (
            "label\nup,1\n".into(),
            "line 2: expected at most 1 cell, as many as the header has, found 2",
        ),
    ];
    for (content, part) in cases {
        let windows = numbers(content.replace('\n', "\r\n"));
        let message = numbers(content);
        assert!(message.contains(part), "{message}\nshould say {part}");
        assert_eq!(windows, message, "lines end in another way");
    }
    folder.write("x.csv", b"label,text\nup,\xff\n");
    assert!(error(config(&path)).contains("x.csv, line 2: not UTF-8"), "{}", error(config(&path)));
}

#[test]
fn wrong_paths_and_folders() {
    let folder = Folder::new();
    assert!(error(FilesConfig::default()).contains("dss train files FILE"));
    assert!(error(config(&folder.path("gone.csv"))).contains("no such file or folder"));
    assert!(error(config(folder.0.path())).contains("one subfolder per class"));
    folder.write("x.npy", npy("(1,)", &[1.0])).write("notes.doc", "x");
    assert!(error(config(&folder.path("x.npy"))).contains("x.npy and y.npy"));
    assert!(error(config(&folder.path("notes.doc"))).contains("task.format"));
    folder.write("a/1.txt", "x").write("b/2.csv", "1");
    assert!(error(config(folder.0.path())).contains("kinds txt, csv; set task.format"));
    let wrong = FilesConfig { val_fraction: -0.5, ..config(folder.0.path()) };
    assert!(error(wrong).contains("task.val_fraction = -0.5"));
    folder.write("a/1.csv", "1,2").write("b/2.csv", "1");
    let wrong = FilesConfig { input: InputChoice::Numbers, ..config(folder.0.path()) };
    assert!(error(wrong).contains("2.csv: has 1 channel, but the files before have 2"));
}
