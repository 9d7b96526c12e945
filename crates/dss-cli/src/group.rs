//! The processes that work together: `--mpi`.

use std::path::{Path, PathBuf};
#[cfg(feature = "mpi")]
use std::{sync::Arc, time::Duration};

use dss_train::group::Group;
use dss_train::text::plural;
use dss_train::{Config, Error};

use crate::args::GroupArgs;
use crate::failure::Failure;
use crate::text;

/// The processes of this job; one if `--mpi` was not given.
#[cfg(feature = "mpi")]
pub fn start(args: &GroupArgs) -> Result<Group, Failure> {
    if !args.mpi {
        return Ok(Group::alone());
    }
    let seconds = Duration::from_secs;
    let (wait, wait_data) = (seconds(args.mpi_wait), seconds(args.mpi_wait_data));
    Ok(Group::new(Arc::new(dss_train::group::Mpi::start(wait)?), wait, wait_data)?)
}

/// The processes of this job: one.
#[cfg(not(feature = "mpi"))]
pub fn start(args: &GroupArgs) -> Result<Group, Failure> {
    if !args.mpi {
        return Ok(Group::alone());
    }
    Err(Failure::usage("--mpi: this program was built without MPI").hint(
        "install libopenmpi-dev, openmpi-bin and libclang-dev (names of Debian), then: \
         cargo install dss-cli --features mpi",
    ))
}

/// The most shards that are chosen where no number is asked for.
const SHARDS: usize = 16;

/// The shards of a training with `--mpi` that asks for no number: the largest divisor of its batch up to 16. The number
/// of processes does not matter, since the shards are part of the result and the processes are not.
pub fn default_shards(batch: usize) -> usize {
    (1..=SHARDS).rev().find(|&count| batch.is_multiple_of(count)).unwrap_or(1)
}

/// The settings and the run directory, resolved by rank 0 and sent to all.
pub fn shared(
    group: &Group,
    resolved: Result<(Config, PathBuf), Failure>,
) -> Result<(Config, PathBuf), Failure> {
    if !group.is_first() {
        let told: Option<(String, PathBuf)> =
            serde_json::from_slice(&group.share(Vec::new())?).ok();
        let (config, out) = told.ok_or_else(|| Failure::usage("rank 0 failed").silent())?;
        return Ok((Config::from_toml(&config, "rank 0")?, out));
    }
    let told = resolved.as_ref().ok().map(|(config, out)| (config.to_annotated_toml(), out));
    group.share(serde_json::to_vec(&told).unwrap_or_default())?;
    resolved
}

/// One line about where the processes run.
pub fn describe(group: &Group, threads: usize) -> String {
    let mut machines: Vec<&str> = group.members().iter().map(|m| m.machine.as_str()).collect();
    machines.sort_unstable();
    machines.dedup();
    let (machines, threads) = (machines.len() as u64, threads as u64);
    let (machines, threads) = (plural(machines, "machine"), plural(threads, "thread"));
    format!("{} processes on {machines}, {threads} each", group.size())
}

/// An error of a training with several processes: said once, with what to do; without the others the job ends here.
pub fn failure(group: &Group, error: Error, task: &str, out: &Path) -> Failure {
    let peer = matches!(error, Error::Peer { .. });
    let failure = Failure::from(error).about_task(task);
    if group.size() == 1 {
        return failure;
    }
    let resume = format!(
        "what was saved is intact; continue with any number of processes, here for example: \
         mpirun -np {} dss train {task} --mpi --resume --out {}",
        group.size(),
        text::shell(out)
    );
    if group.is_lost() {
        // If the ranks cannot agree, every rank that is left reports the error.
        failure.hint(resume).report();
        group.abort(1);
    }
    match (group.is_first(), peer) {
        (true, true) => failure.hint(resume),
        (true, false) => failure,
        (false, _) => failure.silent(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shards_follow_from_the_batch() {
        let shards = [1, 16, 24, 32, 50, 64, 34, 17].map(default_shards);
        assert_eq!(shards, [1, 16, 12, 16, 10, 16, 2, 1]);
    }
}
