//! Files that changed on the disk, or that belong to another run, are noticed; one bad file is not the end of a run.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{TempDir, assert_same, remains, run, small_listops};
use dss_train::{Config, Error};

/// The files of the directory `last`.
fn saved(out: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(out.join("last")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Copies a directory of files and directories.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => {
                fs::copy(entry.path(), to).unwrap();
            }
        }
    }
}

fn flip_a_bit(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = at % bytes.len();
    bytes[at] ^= 4;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_flipped_bit_costs_one_save() {
    let temp = TempDir::new("rot");
    let (whole, half) = (temp.join("whole"), temp.join("half"));
    let mut config = small_listops(2);
    // Both then evaluate at the end of every epoch.
    config.train.eval_every = 0;
    run(&config, &whole, false).unwrap();
    config.train.epochs = 1;
    run(&config, &half, false).unwrap();
    config.train.epochs = 2;
    for (i, path) in saved(&half).into_iter().enumerate() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let out = temp.join(&format!("rotten-{name}"));
        copy(&half, &out);
        flip_a_bit(&out.join("last").join(&name), 1000 * i + 77);
        run(&config, &out, true).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_same(&remains(&whole), &remains(&out), &name);

        // The save before it is damaged, too.
        let out = temp.join(&format!("lost-{name}"));
        copy(&half, &out);
        for last in ["last", "last.old"] {
            flip_a_bit(&out.join(last).join(&name), 1000 * i + 77);
        }
        let error = run(&config, &out, true).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("damaged") || text.contains("cannot read"), "{name}: {text}");
    }
    flip_a_bit(&half.join("best.safetensors"), 5000);
    let error = run(&config, &half, true).unwrap_err();
    assert!(matches!(error, Error::NoBest { .. }), "{error}");
}

/// Every file that is read back has its checksum, and settings are those of the save.
#[test]
fn missing_checksums_and_other_settings_are_refused() {
    let temp = TempDir::new("unlisted");
    let config = small_listops(1);
    let whole = temp.join("whole");
    run(&config, &whole, false).unwrap();
    let refused = |config: &Config, change: &dyn Fn(&Path), part: &str| {
        let out = temp.join("changed");
        copy(&whole, &out);
        fs::remove_dir_all(out.join("last.old")).unwrap();
        change(&out);
        let error = run(config, &out, true).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
        fs::remove_dir_all(out).unwrap();
    };
    let sums = |out: &Path| out.join("last/SHA256SUMS");
    refused(&config, &|out| fs::write(sums(out), "").unwrap(), "the checksum of state.json");
    for name in ["state.json", "model.safetensors", "optimiser.safetensors"] {
        let without = |out: &Path| {
            let text = fs::read_to_string(sums(out)).unwrap();
            let kept = text.lines().filter(|line| !line.ends_with(name));
            fs::write(sums(out), kept.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        };
        refused(&config, &without, &format!("the checksum of {name} is missing"));
    }
    // A bit of config.toml, which says how to resume.
    let mut other = config.clone();
    other.train.lr *= 2.0;
    let changed =
        |out: &Path| fs::write(out.join("config.toml"), other.to_annotated_toml()).unwrap();
    refused(&other, &changed, "train.lr");
}

#[test]
fn directories_without_checksums_resume() {
    let temp = TempDir::new("unsigned");
    let (whole, old) = (temp.join("whole"), temp.join("old"));
    let mut config = small_listops(2);
    config.train.eval_every = 0;
    run(&config, &whole, false).unwrap();
    config.train.epochs = 1;
    run(&config, &old, false).unwrap();
    fs::remove_file(old.join("last/SHA256SUMS")).unwrap();
    fs::remove_dir_all(old.join("last.old")).unwrap();
    config.train.epochs = 2;
    run(&config, &old, true).unwrap();
    assert_same(&remains(&whole), &remains(&old), "without checksums");
}

#[test]
fn files_of_another_run_are_refused() {
    let temp = TempDir::new("foreign");
    let config = small_listops(1);
    let mut other = config.clone();
    other.train.seed += 1;
    let (mine, theirs) = (temp.join("mine"), temp.join("theirs"));
    run(&config, &mine, false).unwrap();
    run(&other, &theirs, false).unwrap();
    let refused = |change: &dyn Fn(&Path), parts: &[&str]| {
        let out = temp.join("changed");
        copy(&mine, &out);
        fs::remove_dir_all(out.join("last.old")).unwrap();
        fs::remove_file(out.join("last/SHA256SUMS")).unwrap();
        change(&out);
        let error = run(&config, &out, true).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        fs::remove_dir_all(out).unwrap();
    };
    let from_theirs = |name: &'static str| {
        let theirs = theirs.clone();
        move |out: &Path| {
            fs::copy(theirs.join(name), out.join(name)).unwrap();
        }
    };
    refused(&from_theirs("last/model.safetensors"), &["model.safetensors", "`seed` is 1"]);
    refused(&from_theirs("best.safetensors"), &["best.safetensors", "`seed` is 1"]);
    let state = |from: &'static str, to: &'static str| {
        move |out: &Path| {
            let path = out.join("last/state.json");
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(from), "{text}");
            fs::write(path, text.replacen(from, to, 1)).unwrap();
        }
    };
    for impossible in ["0", "5", "18446744073709551615"] {
        let to: &'static str = format!("\"steps_per_epoch\": {impossible}").leak();
        refused(&state("\"steps_per_epoch\": 6", to), &["state.json", "steps_per_epoch"]);
    }
    refused(&state("\"step\": 6", "\"step\": 5"), &["model.safetensors", "`step` is 6"]);
}
