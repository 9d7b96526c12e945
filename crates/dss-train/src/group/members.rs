//! Where the ranks of a group run.

use std::fs;

use serde::{Deserialize, Serialize};

/// A rank's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Name of its machine.
    pub host: String,
    /// What tells machines apart whose names are equal: the start of the system, and the space that process numbers are
    /// valid in.
    pub machine: String,
    /// Its process number.
    pub pid: u32,
    /// The cores that it may use, as the system writes them.
    pub cores: String,
}

impl Member {
    /// This process.
    pub(super) fn current() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let status = read("/proc/self/status");
        let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Self {
            host: read("/proc/sys/kernel/hostname"),
            machine: read("/proc/sys/kernel/random/boot_id") + &space.to_string_lossy(),
            pid: std::process::id(),
            cores: cores.unwrap_or_default().trim().to_owned(),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data")
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }
}

/// Whether a process of this machine has ended; where the system does not say, it has not.
pub(super) fn has_ended(pid: u32) -> bool {
    if !fs::exists("/proc/self/stat").unwrap_or(false) {
        return false;
    }
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        // A process that has ended and was not asked for its exit code: pid (name) Z ...
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Whether a rank speaks for all: each one before it has ended, or is on the machine of rank 0, out of sight.
pub(super) fn speaks(members: &[Member], rank: usize) -> bool {
    let own = &members[rank].machine;
    members[..rank].iter().all(|other| match other.machine == *own {
        true => has_ended(other.pid),
        false => other.machine == members[0].machine,
    })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_is_seen() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!has_ended(child.id()) && !has_ended(std::process::id()));
        child.kill().unwrap();
        // Not asked for its exit code yet.
        while !has_ended(child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(has_ended(child.id()));
    }

    #[test]
    fn the_first_rank_that_is_left_speaks() {
        let speakers = |processes: &[(&str, bool)]| -> Vec<usize> {
            let pid = |lives| if lives { std::process::id() } else { u32::MAX };
            let member = |&(machine, lives): &(&str, bool)| Member {
                machine: machine.to_owned(),
                pid: pid(lives),
                ..Member::default()
            };
            let members: Vec<Member> = processes.iter().map(member).collect();
            (0..members.len()).filter(|&rank| processes[rank].1 && speaks(&members, rank)).collect()
        };
        assert_eq!(speakers(&[("a", true), ("a", true), ("a", true)]), [0]);
        assert_eq!(speakers(&[("a", false), ("a", true), ("a", true)]), [1]);
        // What happened to rank 0 is not known on other machines; one of them is enough.
        assert_eq!(speakers(&[("a", true), ("b", true), ("b", true), ("c", true)]), [0, 1]);
        assert_eq!(speakers(&[("a", false), ("a", true), ("b", true), ("c", true)]), [1, 2]);
    }

    #[test]
    fn members_survive_the_journey() {
        let own = Member::current();
        assert!(!own.machine.is_empty() && own.pid > 0);
        assert_eq!(Member::from_bytes(&own.to_bytes()), own);
    }
}
