//! The README of the workspace.

use std::fs;
use std::path::Path;

/// Its Rust examples are those of the READMEs of the crates, which compile and run as documentation tests.
#[test]
fn examples_are_those_of_the_crates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join("crates").is_dir() {
        return; // A package has no workspace around it.
    }
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let readme = read("README.md");
    let crates = [read("crates/dss-nn/README.md"), read("crates/dss-kernels/README.md")];
    let examples: Vec<&str> = readme.split("```rust\n").skip(1).collect();
    assert_eq!(examples.len(), crates.len());
    for (example, tested) in examples.iter().zip(crates) {
        let code = example.split("```").next().unwrap();
        assert!(tested.contains(code), "not in the crate's README:\n{code}");
    }
}
