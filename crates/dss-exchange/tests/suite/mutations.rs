//! Damaged copies of checkpoints: an error or a model, never a panic; of those that would run a command, never the command.

use std::fs;
use std::path::Path;

use dss_exchange::{ImportOptions, import};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::golden::settings;

/// Of each sound file; `DSS_MUTATIONS` sets another number.
const MUTATIONS: usize = 2000;

#[test]
fn damaged_copies() {
    let files = [
        "ag1988/softmax_bn_post.pt",
        "ag1988/softmax_bn_post.legacy.pt",
        "ag1988/softmax_bn_post.oldlightning.ckpt",
        "ag1988/softmax_bn_post.safetensors",
        "s4/block_nplr_s1.pth",
        "annotated-s4/dss_pre.msgpack",
    ];
    let count = mutations();
    let (mut imported, mut refused) = (0, 0);
    for file in files {
        let name = file.split('.').next().unwrap();
        let [more_imported, more_refused] = tried(file, &format!("{name}.config.yaml"), count);
        imported += more_imported;
        refused += more_refused;
    }
    assert!(refused > imported / 10, "{refused} refused, {imported} imported");
}

/// Under `torch.load(weights_only=False)` most of these run `touch PWNED`.
#[test]
fn damaged_copies_of_what_would_run_a_command() {
    let files = [
        "hostile/exec_os_system.pt",
        "hostile/exec_build_setstate.pt",
        "hostile/exec_inst_opcode.pt",
        "hostile/exec_stack_global.pt",
        "hostile/exec_legacy.pt",
        "hostile/exec_in_place_of_a_tensor.pt",
    ];
    for file in files {
        tried(file, "hostile/hostile.config.yaml", mutations() / 5);
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in [Path::new("."), here, &here.join("tests/golden/hostile")] {
        assert!(!folder.join("PWNED").exists(), "a command ran: {}/PWNED", folder.display());
    }
}

fn mutations() -> usize {
    std::env::var("DSS_MUTATIONS").map_or(MUTATIONS, |n| n.parse().unwrap())
}

/// How many damaged copies of a file were imported, and how many refused.
fn tried(file: &str, config: &str, count: usize) -> [usize; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let original = fs::read(folder.join(file)).unwrap();
    let config = settings(&folder.join(config));
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    let mut found = [0, 0];
    for _ in 0..count {
        let bytes = mutated(&original, &mut rng);
        let options = ImportOptions { settings: config.clone(), ..Default::default() };
        found[usize::from(import(&bytes, &options).is_err())] += 1;
    }
    found
}

/// One to three changes; half of them where the structure is: at the beginning or the end.
fn mutated(sound: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    let mut below = |n: usize| (rng.next_u64() % n.max(1) as u64) as usize;
    for _ in 0..1 + below(3) {
        let len = bytes.len();
        let at = match below(4) {
            0 => below(len.min(4096)),
            1 => len.saturating_sub(1 + below(len.min(4096))),
            _ => below(len),
        };
        match below(7) {
            0 => bytes[at] = below(256) as u8,
            1 => bytes[at] ^= 1 << below(8),
            2 => bytes.truncate(at.max(1)),
            3 => {
                let end = (at + below(64)).min(len);
                bytes.drain(at..end);
            }
            4 => {
                let piece = bytes[at..(at + below(64)).min(len)].to_vec();
                let to = below(len);
                bytes.splice(to..to, piece);
            }
            5 => {
                let end = (at + 8).min(len);
                bytes[at..end].fill(0xff);
            }
            _ => bytes.insert(at, below(256) as u8),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}
