//! Ranks that are processes of an MPI job.
//!
//! One thread makes all calls to MPI; the training gives it numbers and waits for its answer for a bounded time. It
//! uses the collectives that do not block and looks at them now and then, with pauses, so that a rank that waits takes
//! no time from one that works on the same cores.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ::mpi::Threading;
use ::mpi::datatype::{Equivalence, Partition, PartitionMut};
use ::mpi::request::{Request, Scope, scope};
use ::mpi::topology::SimpleCommunicator;
use ::mpi::traits::*;

use super::{Transport, Wait};
use crate::error::{Error, Result};

/// How often a rank that waits looks whether the others are alive.
const LOOK: Duration = Duration::from_millis(100);
/// How long an orderly abort may take.
const ABORT: Duration = Duration::from_secs(5);
/// No abort was asked for.
const NO_ABORT: i32 = 0;

enum Job {
    Gather(Vec<f32>, Vec<i32>),
    GatherWords(Vec<u64>, Vec<i32>),
    Swap(Vec<f32>, Vec<i32>, Vec<i32>),
    Abort,
}

enum Answer {
    Floats(Vec<f32>),
    Words(Vec<u64>),
}

/// A rank of the job that `mpirun` or `srun` started; the only one if it was started directly.
pub struct Mpi {
    rank: usize,
    size: usize,
    jobs: Option<Sender<Job>>,
    answers: Mutex<Receiver<Answer>>,
    /// The exit code with which to end the job.
    abort: Arc<AtomicI32>,
    /// Whether an exchange was given up: the thread is still in it.
    stuck: AtomicBool,
    /// How long to wait for the others at the end.
    limit: Duration,
    thread: Option<JoinHandle<()>>,
}

impl Mpi {
    /// Joins the job, and waits for the others at most for `limit` here and at the end. To be called once in a process.
    ///
    /// # Errors
    /// If others do not join, MPI was started in this process already, or does not know the other processes of the job.
    pub fn start(limit: Duration) -> Result<Self> {
        let (jobs, incoming) = channel();
        let (outgoing, answers) = channel();
        let (place, started) = channel();
        let abort = Arc::new(AtomicI32::new(NO_ABORT));
        let seen = abort.clone();
        let work = move || {
            let Some((universe, _)) = ::mpi::initialize_with_threading(Threading::Funneled) else {
                return;
            };
            let world = universe.world();
            if place.send((world.rank() as usize, world.size() as usize)).is_ok() {
                Worker { world, abort: seen }.serve(&incoming, &outgoing);
            }
        };
        let thread = thread::Builder::new().name("mpi".to_owned()).spawn(work);
        let thread = thread.map_err(|error| Error::Lost { what: format!("no thread: {error}") })?;
        let (rank, size) = started.recv_timeout(limit).map_err(|error| Error::Lost {
            what: match error {
                RecvTimeoutError::Timeout => format!("MPI did not start within {limit:?}"),
                RecvTimeoutError::Disconnected => "MPI is already initialised".to_owned(),
            },
        })?;
        let joined = Self {
            rank,
            size,
            jobs: Some(jobs),
            answers: Mutex::new(answers),
            abort,
            stuck: AtomicBool::new(false),
            limit,
            thread: Some(thread),
        };
        match launched().filter(|&count| count > 1 && size == 1) {
            Some(count) => Err(Error::Group(format!(
                "{count} processes were started, but MPI knows only this one: use the mpirun of the MPI that the \
                 program was built with; with Slurm, `srun --mpi=list` shows what to try (srun --mpi=pmix)"
            ))),
            None => Ok(joined),
        }
    }

    /// The answer to a job, within the limit.
    fn ask(&self, job: Job, wait: &Wait) -> Result<Answer> {
        let gone = || Error::Lost { what: "the thread of MPI has ended".to_owned() };
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if self.stuck.load(Ordering::SeqCst) {
            return Err(gone());
        }
        self.jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        let begin = Instant::now();
        loop {
            match answers.recv_timeout(LOOK) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => wait.check(begin).inspect_err(|_| {
                    self.stuck.store(true, Ordering::SeqCst);
                })?,
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            }
        }
    }

    fn floats(&self, job: Job, wait: &Wait) -> Result<Vec<f32>> {
        match self.ask(job, wait)? {
            Answer::Floats(numbers) => Ok(numbers),
            Answer::Words(_) => unreachable!("floats were asked for"),
        }
    }
}

impl std::fmt::Debug for Mpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {} processes", self.rank, self.size)
    }
}

/// How many processes the launcher says that it started: Open MPI's, MPICH's or Slurm's.
fn launched() -> Option<usize> {
    let names = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];
    names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

fn counts(counts: &[usize]) -> Vec<i32> {
    // MPI counts in C's int, and its places of numbers too.
    assert!(counts.iter().sum::<usize>() <= i32::MAX as usize, "more than 2^31 numbers");
    counts.iter().map(|&n| n as i32).collect()
}

impl Transport for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn gather(&self, mine: Vec<f32>, lengths: &[usize], wait: &Wait) -> Result<Vec<f32>> {
        self.floats(Job::Gather(mine, counts(lengths)), wait)
    }

    fn gather_words(&self, mine: Vec<u64>, lengths: &[usize], wait: &Wait) -> Result<Vec<u64>> {
        match self.ask(Job::GatherWords(mine, counts(lengths)), wait)? {
            Answer::Words(words) => Ok(words),
            Answer::Floats(_) => unreachable!("words were asked for"),
        }
    }

    fn swap(
        &self,
        parts: Vec<f32>,
        send: &[usize],
        receive: &[usize],
        wait: &Wait,
    ) -> Result<Vec<f32>> {
        self.floats(Job::Swap(parts, counts(send), counts(receive)), wait)
    }

    fn abort(&self, code: i32) -> ! {
        // Its launcher ends the job more reliably than Open MPI's own abort, which may meet the end of another rank.
        #[cfg(unix)]
        if let Some(launcher) = super::launcher::parent() {
            super::launcher::end(launcher);
            std::process::exit(code)
        }
        self.abort.store(if code == NO_ABORT { 1 } else { code }, Ordering::SeqCst);
        if let Some(jobs) = &self.jobs {
            // In an exchange the thread looks at the flag, otherwise it waits for a job.
            let _ = jobs.send(Job::Abort);
        }
        thread::sleep(ABORT);
        std::process::exit(code)
    }
}

/// Leaves the job in order, or, in a panic or after an exchange that was given up, ends it.
impl Drop for Mpi {
    fn drop(&mut self) {
        if thread::panicking() {
            self.abort(1);
        }
        self.jobs = None;
        if self.stuck.load(Ordering::SeqCst) {
            return;
        }
        // The thread leaves MPI when all ranks do, and then lets go of the channel.
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(RecvTimeoutError::Timeout) = answers.recv_timeout(self.limit) {
            eprintln!("error: the other processes did not end within {:?}", self.limit);
            self.abort(1);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread that talks to MPI.
struct Worker {
    world: SimpleCommunicator,
    abort: Arc<AtomicI32>,
}

impl Worker {
    fn serve(&self, jobs: &Receiver<Job>, answers: &Sender<Answer>) {
        for job in jobs {
            let answer = match job {
                Job::Gather(mine, counts) => Answer::Floats(self.gather(&mine, counts)),
                Job::GatherWords(mine, counts) => Answer::Words(self.gather(&mine, counts)),
                Job::Swap(parts, send, receive) => Answer::Floats(self.swap(&parts, send, receive)),
                Job::Abort => self.world.abort(self.abort.load(Ordering::SeqCst)),
            };
            if answers.send(answer).is_err() {
                return;
            }
        }
    }

    fn gather<T: Equivalence + Default + Clone>(&self, mine: &[T], counts: Vec<i32>) -> Vec<T> {
        let mut all = vec![T::default(); total(&counts)];
        let starts = starts(&counts);
        let mut parts = PartitionMut::new(&mut all[..], counts, starts);
        scope(|scope| {
            self.complete(self.world.immediate_all_gather_varcount_into(scope, mine, &mut parts));
        });
        all
    }

    fn swap(&self, parts: &[f32], send: Vec<i32>, receive: Vec<i32>) -> Vec<f32> {
        let mut all = vec![0.0; total(&receive)];
        let (send_starts, receive_starts) = (starts(&send), starts(&receive));
        let outgoing = Partition::new(parts, send, send_starts);
        let mut incoming = PartitionMut::new(&mut all[..], receive, receive_starts);
        scope(|scope| {
            let world = &self.world;
            self.complete(world.immediate_all_to_all_varcount_into(
                scope,
                &outgoing,
                &mut incoming,
            ));
        });
        all
    }

    /// Looks at a request until it is done, ever less often.
    fn complete<'a, D: ?Sized, S: Scope<'a>>(&self, mut request: Request<'a, D, S>) {
        let begin = Instant::now();
        loop {
            request = match request.test() {
                Ok(_) => return,
                Err(request) => request,
            };
            let code = self.abort.load(Ordering::SeqCst);
            if code != NO_ABORT {
                self.world.abort(code);
            }
            match begin.elapsed().as_micros() {
                0..50 => std::hint::spin_loop(),
                50..500 => thread::yield_now(),
                500..20_000 => thread::sleep(Duration::from_micros(50)),
                _ => thread::sleep(Duration::from_micros(500)),
            }
        }
    }
}

fn total(counts: &[i32]) -> usize {
    counts.iter().map(|&count| count as usize).sum()
}

fn starts(counts: &[i32]) -> Vec<i32> {
    let next = |start: &mut i32, count: &i32| {
        let own = *start;
        *start += count;
        Some(own)
    };
    counts.iter().scan(0, next).collect()
}
