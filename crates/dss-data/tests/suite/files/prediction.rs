//! What prediction makes of the accepted forms.

use super::*;

#[test]
fn prediction_on_tables_of_numbers() {
    let folder = Folder::new();
    let train = folder.write("train.csv", numbers_csv(true)).path("train.csv");
    let task =
        load(FilesConfig { columns: "c,a".into(), scale: Scale::Standardise, ..config(&train) });
    let (expected, _) = examples(&task).into_iter().next().unwrap();
    assert_eq!(predict(&task, &train).unwrap().iter().filter(|(_, x)| *x == expected).count(), 1);
    folder
        .write("named.csv", "z,a,c\n9,8,-8\n")
        .write("plain.csv", "-8,8\n")
        .write("wide.csv", "up,8,0.5,-8\n");
    folder.write("one.npy", npy("(2,)", &[-8.0, 8.0]));
    let all = ["named.csv", "plain.csv", "wide.csv", "one.npy"]
        .map(|file| predict(&task, &folder.path(file)).unwrap().remove(0));
    assert!(all.iter().all(|(_, x)| *x == all[0].1), "{all:?}");
    assert_eq!((all[0].0.as_str(), all[3].0.as_str()), ("named.csv:2", "one.npy"));
    folder.write("long.npy", npy("(3,)", &[1.0, 2.0, 3.0]));
    let message = predict(&task, &folder.path("long.npy")).unwrap_err().to_string();
    assert!(message.contains("takes 3 positions") && message.contains("max_length"), "{message}");
    // A model of all columns: with the label there is one more, and no others.
    let task = load(config(&train));
    folder.write("more.csv", "up,8,0.5,-8\n").write("wider.csv", "up,8,0.5,-8,1\n");
    assert_eq!(predict(&task, &folder.path("more.csv")).unwrap().len(), 1);
    let message = predict(&task, &folder.path("wider.csv")).unwrap_err().to_string();
    assert!(
        message.contains("expected 3 cells as in the training, or 4 with a label"),
        "{message}"
    );
}

/// By the names and the shape of the training, or not at all.
#[test]
fn prediction_refuses_other_tables() {
    let folder = Folder::new();
    let train = folder.write("train.csv", numbers_csv(true)).path("train.csv");
    let task = load(config(&train));
    let refused = |table: &str| {
        folder.write("new.csv", table);
        predict(&task, &folder.path("new.csv")).unwrap_err().to_string()
    };
    let names = refused("label,a,b,d\nup,1,2,3\n");
    assert!(names.contains("expected the columns a, b, c, found label, a, b, d"), "{names}");
    let short = refused("1,2\n3,4\n");
    assert!(
        short.contains("line 1: expected 3 cells as in the training, or 4 with a label"),
        "{short}"
    );
    let long = refused("up,1,2,3\nup,1,2,3,4\n");
    assert!(long.contains("line 2: expected 4 cells, found 5"), "{long}");
    // A label is not a sample, in rows of any length.
    folder.write("ragged.csv", "up,1,2\ndown,3\n");
    let read = predict(&task, &folder.path("ragged.csv")).unwrap();
    assert_eq!((&read[0].1, &read[1].1), (&values(&[1.0, 2.0]), &values(&[3.0])));
}

#[test]
fn prediction_on_text() {
    let folder = Folder::new();
    let task = load(config(&folder.write("reviews.tsv", reviews()).path("reviews.tsv")));
    folder.write("new.txt", "Film 1, fine\n").write("new.tsv", "Film 1, fine\nFilm é\n");
    let [document, table] =
        ["new.txt", "new.tsv"].map(|f| predict(&task, &folder.path(f)).unwrap());
    assert_eq!((document.len(), table.len()), (1, 2));
    assert_eq!(document[0].1, table[0].1);
    let Input::Tokens(ids) = &table[1].1 else { panic!() };
    assert_eq!(ids[ids.len() - 2..], [1, 2], "unknown, then <eos>");
}

#[test]
fn prediction_on_steps_and_stacks() {
    let folder = Folder::new();
    for i in 0..30 {
        folder.write(&format!("{}/{i}.csv", i % 2), format!("x,y\n{i},1\n{i},2\n"));
    }
    let task = load(config(folder.0.path()));
    folder.write("new.csv", "3,1\n3,2\n").write("new.npy", npy("(2, 2)", &[3.0, 1.0, 3.0, 2.0]));
    folder.write("many.npy", npy("(1, 2, 2)", &[3.0, 1.0, 3.0, 2.0])).write("bad.csv", "1,2,3\n");
    for file in ["new.csv", "new.npy", "many.npy"] {
        let read = predict(&task, &folder.path(file)).unwrap();
        assert_eq!(read[0].1, values(&[3.0, 1.0, 3.0, 2.0]), "{file}");
    }
    fs::write(folder.path("bad.npy"), npy("(2,)", &[1.0, 2.0])).unwrap();
    assert!(
        predict(&task, &folder.path("bad.npy"))
            .unwrap_err()
            .to_string()
            .contains("has 1 channel, ")
    );
}

#[test]
fn prediction_on_synthetic_tasks() {
    let folder = Folder::new();
    folder
        .write("x.csv", "0.5,1\n0.25,0\n")
        .write("t.csv", "2,3,4\n5,1,1\n")
        .write("bad.csv", "2,99\n");
    let [adding, delay] = ["adding", "delay"]
        .map(|name| TaskConfig::default_for(name).unwrap().load(None, &|_| {}).unwrap());
    assert_eq!(
        predict(&adding, &folder.path("x.csv")).unwrap()[0].1,
        values(&[0.5, 1.0, 0.25, 0.0])
    );
    let rows = predict(&delay, &folder.path("t.csv")).unwrap();
    assert_eq!(rows[1], ("t.csv:2".into(), Input::Tokens(vec![5, 1, 1])));
    let message = predict(&delay, &folder.path("bad.csv")).unwrap_err().to_string();
    assert!(message.contains("line 1, column 2: expected a token id below 10"), "{message}");
}
