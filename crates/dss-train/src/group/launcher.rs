//! The program that started the ranks of this machine (`mpirun` or the like). It should end when they do, but Open
//! MPI's may wait forever for a machine that is cut off, or for itself when a rank aborts while another is being
//! killed.

use std::fs;
use std::os::unix::process::parent_id;
use std::thread::sleep;
use std::time::Duration;

/// How long it may take to end the job by itself.
const GRACE: Duration = Duration::from_secs(4);
/// How long it may take to end once it has been asked to; it kills its processes a second after that.
const ASKED: Duration = Duration::from_millis(400);

/// Their names; on other machines than its own, each MPI has another one.
const LAUNCHERS: [&str; 9] = [
    "mpirun",
    "mpiexec",
    "orterun",
    "orted",
    "prterun",
    "prte",
    "prted",
    "hydra_pmi_proxy",
    "hydra_bstrap_pr",
];

/// The process that started this one, if it is a launcher.
pub(super) fn parent() -> Option<u32> {
    let pid = parent_id();
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    is_launcher(&name).then_some(pid)
}

/// Debian has `mpirun.openmpi` and `mpiexec.hydra` beside `mpirun`.
fn is_launcher(name: &str) -> bool {
    let name = name.trim().split('.').next();
    name.is_some_and(|name| LAUNCHERS.contains(&name))
}

/// Waits until the launcher ends this process and with it the job. If it does not, asks it to, twice, as Ctrl-C twice
/// makes Open MPI's give up waiting; then kills it.
pub(super) fn end(pid: u32) {
    sleep(GRACE);
    for signal in [libc::SIGTERM, libc::SIGTERM, libc::SIGKILL] {
        if parent_id() != pid {
            return; // It has ended.
        }
        // SAFETY: sends a signal to the parent of this process and touches no memory.
        unsafe { libc::kill(pid as libc::pid_t, signal) };
        sleep(ASKED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_launchers_are_launchers() {
        for name in ["mpirun\n", "mpirun.openmpi", "mpiexec.hydra", "orted", "hydra_pmi_proxy"] {
            assert!(is_launcher(name), "{name}");
        }
        for name in ["", "bash", "slurmstepd", "mpirun-wrapper", "mpi", "srun", "cargo"] {
            assert!(!is_launcher(name), "{name}");
        }
    }
}
