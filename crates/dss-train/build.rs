//! Says which packages the feature `mpi` needs, before its dependencies fail with less.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["MPICC", "MPI_PKG_CONFIG", "CRAY_MPICH_DIR", "LIBCLANG_PATH"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    if env::var_os("CARGO_FEATURE_MPI").is_none() || cfg!(not(unix)) {
        return;
    }
    let mut missing = Vec::new();
    if !has_mpi() {
        missing.push("an MPI library with its compiler mpicc (Debian: libopenmpi-dev openmpi-bin)");
    }
    if !has_libclang() {
        missing.push("libclang (Debian: libclang-dev; elsewhere name its folder in LIBCLANG_PATH)");
    }
    if !missing.is_empty() {
        println!("cargo::error=the feature `mpi` needs {}", missing.join(" and "));
    }
}

fn has_mpi() -> bool {
    let runs = |program: &str, args: &[&str]| {
        Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
    };
    let named = ["MPI_PKG_CONFIG", "CRAY_MPICH_DIR"].iter().any(|name| env::var_os(name).is_some());
    let mpicc = env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    named
        || runs(&mpicc, &["-show"])
        || ["mpich", "ompi"].iter().any(|name| runs("pkg-config", &["--exists", name]))
}

/// Whether a libclang is where bindgen looks for one.
fn has_libclang() -> bool {
    let named = env::var_os("LIBCLANG_PATH").is_some();
    let known = [
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
        "/usr/local/lib64",
        "/opt/homebrew/opt/llvm/lib",
    ];
    let mut folders: Vec<PathBuf> = known.iter().map(PathBuf::from).collect();
    for parent in ["/usr/lib", "/usr/lib64", "/usr/local"] {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.contains("llvm") {
                folders.push(entry.path().join("lib"));
            } else if name.contains("linux-gnu") || name.contains("linux-musl") {
                folders.push(entry.path());
            }
        }
    }
    let config = Command::new("llvm-config").arg("--libdir").output();
    if let Ok(output) = config {
        folders.push(String::from_utf8_lossy(&output.stdout).trim().into());
    }
    named || folders.iter().any(|folder| holds_libclang(folder))
}

fn holds_libclang(folder: &Path) -> bool {
    let mut names = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.file_name());
    names.any(|name| {
        let name = name.to_string_lossy().into_owned();
        name.starts_with("libclang.so") || name.starts_with("libclang-") || name == "libclang.dylib"
    })
}
