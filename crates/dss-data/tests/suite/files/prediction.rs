//! What prediction makes of the accepted forms.

use super::*;

/// Tokens before those of the characters.
const SPECIALS: usize = 3;

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
    assert_eq!((all[0].0, all[3].0), (SequencePlace::Line(2), SequencePlace::File));
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
    assert_eq!(rows[1], (SequencePlace::Line(2), Input::Tokens(vec![5, 1, 1])));
    let message = predict(&delay, &folder.path("bad.csv")).unwrap_err().to_string();
    assert!(message.contains("line 1, column 2: expected a token id below 10"), "{message}");
}

/// The rows of a file, and what is said about it, by a model that knows its classes.
fn read_noted(task: &Task, path: &Path) -> (Vec<Input>, String) {
    let Encoder::Files(encoder) = &task.encoder else { panic!("another encoder") };
    let encoder = FilesEncoder { classes: classes(task), ..encoder.clone() };
    let mut said = String::new();
    let read = encoder.read_noted(path, &mut |note| said += &note).unwrap();
    (read.into_iter().map(|(_, input)| input).collect(), said)
}

/// A first row that looks like names is not lost.
#[test]
fn the_first_row_is_an_example() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{i}{}\n", ["target", "label"][i % 2], ",0.5".repeat(9));
    let rows = (0..40).map(row).collect::<String>();
    let train = folder.write("train.csv", rows).path("train.csv");
    let task = load(FilesConfig { header: Header::No, ..config(&train) });
    let ramp: Vec<f32> = (0..10).map(|i| i as f32).collect();
    let cells = ramp.iter().map(f32::to_string).collect::<Vec<_>>().join(",");
    let other = "0.5,".repeat(9) + "0.5";
    for (first, input) in [
        (format!("target,{other}"), values(&[0.5; 10])),
        (format!("label,{cells}"), values(&ramp)),
        (cells.clone(), values(&ramp)),
    ] {
        let second = if first == cells { other.clone() } else { format!("label,{other}") };
        let path = folder.write("new.csv", format!("{first}\n{second}\n")).path("new.csv");
        let (read, said) = read_noted(&task, &path);
        assert_eq!(read, [input, values(&[0.5; 10])], "{first}");
        assert!(said.contains("2 rows, each a sequence, no header"), "{said}");
    }
    let named = format!("kind,{cells}\ntarget,{other}\n");
    let (read, said) = read_noted(&task, &folder.write("new.csv", named).path("new.csv"));
    assert_eq!(read.len(), 1);
    assert!(said.contains("1 row, each a sequence, a header"), "{said}");
}

#[test]
fn the_first_text_is_an_example() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},some words {i}\n", ["target", "other"][i % 2]);
    let rows = (0..40).map(row).collect::<String>();
    let train = folder.write("train.csv", rows).path("train.csv");
    let task = load(FilesConfig { header: Header::No, ..config(&train) });
    folder.write("new.csv", "target,some words 1\nother,some words 2\n");
    let (read, said) = read_noted(&task, &folder.path("new.csv"));
    assert_eq!(read.len(), 2, "{said}");
}

/// What is read of a table of texts by a model that knows its classes: the texts, decoded, or the error.
fn texts_of(task: &Task, path: &Path) -> Result<(Vec<String>, String), String> {
    let Encoder::Files(encoder) = &task.encoder else { panic!("another encoder") };
    let encoder = FilesEncoder { classes: classes(task), ..encoder.clone() };
    let mut said = String::new();
    let read = encoder.read_noted(path, &mut |note| said += &note).map_err(|e| e.to_string())?;
    let vocabulary = task.vocabulary.clone().unwrap();
    let decoded = |input: Input| {
        let Input::Tokens(ids) = input else { panic!("a text") };
        let (_, text) = ids.split_last().unwrap();
        text.iter().map(|&id| vocabulary[id as usize].as_str()).collect::<String>()
    };
    Ok((read.into_iter().map(|(_, input)| decoded(input)).collect(), said))
}

/// A label, or half of a text, must not be scored in place of the text.
#[test]
fn the_texts_of_a_table_are_found_or_asked_for() {
    let folder = Folder::new();
    let rows: String =
        (0..40).map(|i| format!("{},\"some words, {i}\"\n", ["good", "bad"][i % 2])).collect();
    folder.write("plain.csv", &rows).write("named.csv", format!("label,text\n{rows}"));
    let task =
        |name: &str| load(FilesConfig { input: InputChoice::Text, ..config(&folder.path(name)) });
    let (plain, named) = (task("plain.csv"), task("named.csv"));
    let of =
        |task: &Task, table: &str| texts_of(task, &folder.write("new.csv", table).path("new.csv"));
    for task in [&plain, &named] {
        let read = |table: &str| of(task, table).unwrap_or_else(|e| panic!("{table:?}: {e}"));
        for table in [
            "text,label\nsome,good\nwords,bad\n",
            "label,text\ngood,some\nbad,words\n",
            "text\nsome\nwords\n",
            "some\nwords\n",
            "good,some\n,words\n",
            "label;text\ngood;some\nbad;words\n",
            "good;some\nbad;words\n",
        ] {
            assert_eq!(read(table).0, ["some", "words"], "{table:?}");
        }
        assert!(read("good;some\nbad;words\n").1.contains("separated by semicolons"));
        assert_eq!(read("some; words\nwords\n").0, ["some<unk> words", "words"]);
        // One text per line, with a comma that is not quoted.
        let message = of(task, "some, words\nother, words\n").unwrap_err();
        assert!(message.contains("line 2: expected the text in column 2"), "{message}");
        assert!(
            message.contains("(bad, good, or empty)") && message.contains("quoted"),
            "{message}"
        );
        assert!(message.contains("found \"other\" and \"words\""), "{message}");
        assert!(of(task, "some words\nmore words\nwords, and words\n").is_err());
        let late = format!("{}words, and words\n", "some words\n".repeat(150));
        assert!(of(task, &late).unwrap_err().contains("line 151"));
        assert!(of(task, "good,\n").unwrap_err().contains("the text is empty"));
    }
    // The names are not those of the training, which had some; or it had none, and the labels tell.
    let message = of(&named, "kind,words\ngood,some\nbad,words\n").unwrap_err();
    assert!(message.contains("expected the column \"text\" of the training"), "{message}");
    assert!(message.contains("the columns kind, words"), "{message}");
    let (read, said) = of(&plain, "kind,words\ngood,some\nbad,words\n").unwrap();
    assert_eq!(read, ["some", "words"]);
    assert!(said.contains("2 rows, each a sequence, a header"), "{said}");
}

#[test]
fn texts_without_their_mark_and_without_anything() {
    let folder = Folder::new();
    for i in 0..30 {
        let mark = if i < 20 { "\u{feff}" } else { "" };
        let text = format!("{mark}{}\n", "a".repeat(i + 1));
        folder.write(&format!("data/{}/{i}.txt", ["a", "b"][i % 2]), text);
    }
    let task = load(config(&folder.path("data")));
    assert_eq!(task.vocabulary.as_ref().unwrap()[SPECIALS..], ["a"]);
    let read = predict(&task, &folder.write("x.txt", "\u{feff}aa").path("x.txt")).unwrap();
    assert_eq!(read[0].1, Input::Tokens(vec![3, 3, 2]));
    for (name, text) in [("no.txt", ""), ("mark.txt", "\u{feff}"), ("lines.txt", "\n\n")] {
        let error = predict(&task, &folder.write(name, text).path(name)).unwrap_err();
        assert!(error.to_string().contains("the text is empty"), "{name}: {error}");
    }
}

/// A column of an array is a sequence, and not one sequence for each of its numbers.
#[test]
fn an_array_of_single_steps_is_refused() {
    let folder = Folder::new();
    let train = folder.write("train.csv", numbers_csv(true)).path("train.csv");
    let task = load(config(&train));
    let numbers: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let path = folder.write("column.npy", npy("(100, 1)", &numbers)).path("column.npy");
    let message = predict(&task, &path).unwrap_err().to_string();
    assert!(message.contains("holds 100 sequences of 1 step"), "{message}");
    assert!(message.contains("is an array of the shape [100]"), "{message}");
    let rows = folder.write("rows.npy", npy("(2, 3)", &numbers[..6])).path("rows.npy");
    let (read, said) = read_noted(&task, &rows);
    assert_eq!((read.len(), said.as_str()), (2, "rows.npy: 2 sequences of 3 steps"));
    // A model of single steps.
    let short = load(FilesConfig { columns: "a".into(), ..config(&train) });
    assert_eq!(predict(&short, &path).unwrap().len(), 100);
}

/// A row as long as the training's without its label may be one that is a step shorter and labelled.
#[test]
fn rows_without_a_label_are_announced() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{i}.5,0.5,-{i}\n", i % 2);
    let rows = (0..40).map(row).collect::<String>();
    let task = load(config(&folder.write("train.csv", rows).path("train.csv")));
    let (read, said) = read_noted(&task, &folder.write("short.csv", "1,5,6\n").path("short.csv"));
    assert_eq!(read, [values(&[1.0, 5.0, 6.0])]);
    assert!(said.ends_with("read without a label"), "{said}");
    let (_, said) = read_noted(&task, &folder.write("whole.csv", "1,5,6,7\n").path("whole.csv"));
    assert!(!said.contains("without a label"), "{said}");
}

#[test]
fn rows_of_tokens_have_no_header() {
    let folder = Folder::new();
    let encoder = Encoder::TokenRows { vocab: 20, len: 10 };
    let ramp = "0,1,2,3,4,5,6,7,8,9\n9,8,7,6,5,4,3,2,1,0\n";
    let read = encoder.read(&folder.write("ids.csv", ramp).path("ids.csv")).unwrap();
    assert_eq!(read.len(), 2, "as in a stream");
}
