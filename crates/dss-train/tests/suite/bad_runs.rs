//! What goes wrong is said clearly, and what was saved before stays.

use crate::common;
use std::path::Path;

use crate::common::{TempDir, config, remains, run, small_listops};
use dss_train::Error;

#[test]
fn a_loss_that_explodes_stops_the_run() {
    let temp = TempDir::new("nan");
    let out = temp.join("run");
    let mut config = small_listops(20);
    config.train.clip = 0.0;
    for rate in [&mut config.train.lr, &mut config.train.lr_w] {
        *rate = 1e30;
    }
    let error = run(&config, &out, false).unwrap_err();
    let text = error.to_string();
    let Error::NonFinite { step, saved, .. } = error else { panic!("{text}") };
    let (path, saved_step) = saved.unwrap();
    assert!(step > saved_step, "{text}");
    assert!(text.starts_with(&format!("step {step}: ")) && text.contains("try a lower"), "{text}");
    assert!(text.contains(&path.display().to_string()), "{text}");
    // The state that was kept is whole and finite.
    let device = burn::tensor::Device::flex();
    let (_, meta) = dss_nn::checkpoint::load(path.join("model.safetensors"), &device).unwrap();
    assert_eq!(meta.step, saved_step);
}

/// Weights so large that the loss is still finite, but not their product with its gradient.
#[test]
fn a_gradient_that_overflows_stops_the_run_before_the_update() {
    let temp = TempDir::new("gradient");
    let out = temp.join("run");
    let sets = [
        ("task.length", "10"),
        ("task.train", "48"),
        ("task.val", "8"),
        ("task.test", "8"),
        ("model.layers", "1"),
        ("model.h", "8"),
        ("model.n", "4"),
        ("train.batch", "8"),
        ("train.accumulate", "1"),
        ("train.epochs", "1"),
    ];
    let mut config = common::config("adding", &sets);
    run(&config, &out, false).unwrap();

    let path = out.join("last/model.safetensors");
    let (model, meta) = dss_nn::checkpoint::load(&path, &burn::tensor::Device::flex()).unwrap();
    let scaled = model.named_tensors().into_iter().map(|(name, data)| {
        let factor = if name == "head.weight" { 1e30 } else { 1.0 };
        let values: Vec<f32> = data.iter::<f32>().map(|x| x * factor).collect();
        (name, burn::tensor::TensorData::new(values, data.shape().clone()))
    });
    let model = model.clone().load_named(scaled.collect()).unwrap();
    dss_nn::checkpoint::save(&path, &model, &meta).unwrap();
    std::fs::remove_file(out.join("last/SHA256SUMS")).unwrap();

    config.train.epochs = 2;
    let error = run(&config, &out, true).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::NonFinite { step: 7, .. }), "{text}");
    assert!(text.contains("but the gradient of `"), "{text}");
    assert_eq!(dss_nn::checkpoint::load_meta(&path).unwrap().step, 6);
}

#[test]
fn a_statistic_that_overflows_is_reported_at_its_step() {
    let temp = TempDir::new("statistic");
    let table = temp.join("large.csv");
    let row = |i: usize| format!("{},{}e29,-{}e30,{}e28\n", ["a", "b"][i % 2], i % 7, i % 5, i % 3);
    std::fs::write(&table, (0..60).map(row).collect::<String>()).unwrap();
    let sets = [
        ("task.path", table.to_str().unwrap()),
        ("task.scale", "none"),
        ("model.layers", "1"),
        ("model.h", "4"),
        ("model.n", "4"),
        ("model.norm", "batch"),
    ];
    let error = run(&config("files", &sets), &temp.join("run"), false).unwrap_err().to_string();
    assert!(error.starts_with("step 1: the variance of BatchNorm 0 is inf"), "{error}");
}

#[test]
fn settings_out_of_range_are_refused() {
    let temp = TempDir::new("range");
    let mut config = small_listops(1);
    config.train.batch = 0;
    let error = run(&config, &temp.join("run"), false).unwrap_err();
    assert!(error.to_string().contains("train.batch"), "{error}");
    assert!(!temp.join("run").exists());
}

#[test]
fn a_used_directory_is_refused() {
    let temp = TempDir::new("used");
    let out = temp.join("run");
    let config = small_listops(1);
    let error = run(&config, &out, true).unwrap_err();
    assert!(matches!(error, Error::NothingToResume { .. }), "{error}");
    run(&config, &out, false).unwrap();
    let before = remains(&out);
    let error = run(&config, &out, false).unwrap_err();
    assert!(matches!(error, Error::RunExists { .. }), "{error}");
    assert!(error.to_string().contains("--resume"), "{error}");
    assert_eq!(before, remains(&out));
}

#[test]
fn a_directory_in_use_is_refused() {
    let temp = TempDir::new("busy");
    let out = temp.join("run");
    let held = dss_train::run_dir::RunDir::create(&out).unwrap();
    let error = run(&small_listops(1), &out, false).unwrap_err();
    assert!(matches!(error, Error::RunBusy { .. }), "{error}");
    drop(held);
    run(&small_listops(1), &out, false).unwrap();
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let temp = TempDir::new("unwritable");
    let file = temp.join("file");
    std::fs::write(&file, "in the way").unwrap();
    let error = run(&small_listops(1), &file.join("run"), false).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(error.to_string().contains("file/run"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "in the way");
}

/// A directory without the right to write; root may write everywhere, so this says so and stops for root.
#[test]
#[cfg(unix)]
fn a_directory_without_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let temp = TempDir::new("permission");
    let dir = temp.join("locked");
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(dir.join("probe"), "").is_ok() {
        eprintln!("skipped: this user may write everywhere");
        return;
    }
    let error = run(&small_listops(1), &dir.join("run"), false).unwrap_err();
    assert!(error.to_string().contains("--out"), "{error}");
}

#[test]
fn damaged_states_are_refused() {
    let temp = TempDir::new("damaged");
    let out = temp.join("run");
    let config = small_listops(1);
    run(&config, &out, false).unwrap();
    std::fs::remove_dir_all(out.join("last.old")).unwrap();
    for name in [
        "last/state.json",
        "last/optimiser.safetensors",
        "last/model.safetensors",
        "best.safetensors",
    ] {
        let path = out.join(name);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let error = run(&config, &out, true).unwrap_err().to_string();
        assert!(error.contains(Path::new(name).file_name().unwrap().to_str().unwrap()), "{error}");
        std::fs::write(&path, whole).unwrap();
    }
    run(&config, &out, true).unwrap();
}

/// Not only at the end, when its score is wanted.
#[test]
fn a_lost_best_model_is_noticed_at_once() {
    let temp = TempDir::new("lost");
    let out = temp.join("run");
    let mut config = small_listops(1);
    run(&config, &out, false).unwrap();
    std::fs::remove_file(out.join("best.safetensors")).unwrap();
    config.train.epochs = 2;
    let lines = common::metrics(&out).len();
    let error = run(&config, &out, true).unwrap_err();
    assert!(matches!(error, Error::NoBest { .. }), "{error}");
    assert!(error.to_string().contains("best.safetensors"), "{error}");
    assert_eq!(common::metrics(&out).len(), lines, "no step was made");
}

#[test]
fn a_start_that_fails_leaves_nothing_behind() {
    let temp = TempDir::new("start");
    let mut config = small_listops(1);
    let dss_data::TaskConfig::Listops(task) = &mut config.task else { panic!() };
    task.dir = "no/such/folder".to_owned();
    run(&config, &temp.join("runs/one"), false).unwrap_err();
    assert!(!temp.join("runs").exists());

    // What was there before stays, and so does what others put there.
    std::fs::create_dir_all(temp.join("runs/mine")).unwrap();
    run(&config, &temp.join("runs/mine"), false).unwrap_err();
    assert!(temp.join("runs/mine").is_dir());
    run(&config, &temp.join("runs/one"), false).unwrap_err();
    assert!(temp.join("runs").is_dir() && !temp.join("runs/one").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_model_that_does_not_fit_is_refused() {
    let temp = TempDir::new("fit");
    let mut config = small_listops(1);
    config.model.h = 1 << 40;
    let error = run(&config, &temp.join("run"), false).unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error}");
    assert!(!temp.join("run").exists());
}

/// Only what a killed process of ours left.
#[test]
fn files_of_others_are_not_swept_away() {
    let temp = TempDir::new("sweep");
    let out = temp.join("run");
    let config = small_listops(1);
    run(&config, &out, false).unwrap();
    for name in ["notes.tmp", "my.tmp1.txt", "config.toml.tmp", "best.safetensors.tmp123"] {
        std::fs::write(out.join(name), "").unwrap();
    }
    run(&config, &out, true).unwrap();
    let left = ["notes.tmp", "my.tmp1.txt", "config.toml.tmp", "best.safetensors.tmp123"]
        .map(|name| out.join(name).exists());
    assert_eq!(left, [true, true, true, false]);
}

/// Needs the right to mount a file system of its own; otherwise it says so and stops.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_what_was_saved() {
    let temp = TempDir::new("full");
    let mount = |args: &[&str]| {
        std::process::Command::new("mount")
            .args(args)
            .output()
            .is_ok_and(|out| out.status.success())
    };
    let disk = temp.join("disk");
    std::fs::create_dir(&disk).unwrap();
    let path = disk.to_str().unwrap();
    if !mount(&["-t", "tmpfs", "-o", "size=512k", "tmpfs", path]) {
        eprintln!("skipped: no right to mount a small file system");
        return;
    }
    struct Unmount<'a>(&'a str);
    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg(self.0).output();
        }
    }
    let _unmount = Unmount(path);

    let out = disk.join("run");
    let mut config = small_listops(1);
    run(&config, &out, false).unwrap();
    let before = remains(&out);
    let free = vec![0u8; 64 << 10];
    for i in 0.. {
        if std::fs::write(disk.join(format!("filler{i}")), &free).is_err() {
            break;
        }
    }
    config.train.epochs = 6;
    let error = run(&config, &out, true).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(error.to_string().contains("free some space"), "{error}");
    let after = remains(&out);
    let weights = |files: &common::Remains| files.files[2..].to_vec();
    assert_eq!(weights(&before), weights(&after), "last/ is as it was");

    for entry in std::fs::read_dir(&disk).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with("filler") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    assert_eq!(run(&config, &out, true).unwrap().steps, 36);
}
