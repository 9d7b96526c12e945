//! Several processes that train one model: how they exchange numbers, with a limit on every wait.
//!
//! A [`Transport`] moves numbers between the ranks 0 to K − 1 of a group: [`Alone`], [`Threads`] of one process, or
//! `Mpi` (with the feature of that name). [`Group`] makes of it what a training needs: sums by a fixed tree over shard
//! numbers ([`tree`]), the first rank's bytes for all, and agreement on whether to continue.
//!
//! Ranks run the same program, and everything that they decide alone follows from numbers that all of them have. What
//! only one can know (a file that cannot be read, a full disk, Ctrl-C) travels as a status word with
//! [`agree`](Group::agree), of which there is at least one in every step and every few batches of an evaluation. All
//! agreements have the same form, so that a rank that fails between two of them can still take part in the next one.

mod alone;
#[cfg(all(feature = "mpi", unix))]
mod launcher;
mod members;
#[cfg(feature = "mpi")]
mod mpi;
mod threads;
pub mod tree;

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

pub use alone::Alone;
pub use members::Member;
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
pub use threads::Threads;

/// How long a rank waits for the others by default, in seconds.
pub const WAIT: u64 = 600;
/// How long it waits by default while data are read, in seconds.
pub const WAIT_DATA: u64 = 86_400;

/// Pieces of work that a rank does between two agreements where they are shorter than a step.
pub(crate) const ROUND: usize = 4;

/// Moves numbers between ranks. Every call is made by all ranks, in the same order.
///
/// # Errors
/// [`Error::Lost`] if the others do not answer within the limit, or are known to have ended.
pub trait Transport: Send + Sync + fmt::Debug {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// The parts of all ranks, one after the other, on every rank; `counts` are their lengths.
    fn gather(&self, mine: Vec<f32>, counts: &[usize], wait: &Wait) -> Result<Vec<f32>>;

    /// As [`gather`](Self::gather), for whole numbers.
    fn gather_words(&self, mine: Vec<u64>, counts: &[usize], wait: &Wait) -> Result<Vec<u64>>;

    /// Sends to rank r the next `send[r]` numbers of `parts`; returns what all ranks sent to this one, `receive[r]`
    /// numbers of rank r, one after the other.
    fn swap(
        &self,
        parts: Vec<f32>,
        send: &[usize],
        receive: &[usize],
        wait: &Wait,
    ) -> Result<Vec<f32>>;

    /// Ends all ranks at once, with an exit code.
    fn abort(&self, code: i32) -> !;
}

/// How long to wait, and for whom.
#[derive(Clone, Debug)]
pub struct Wait {
    /// The longest time for one exchange.
    pub limit: Duration,
    /// Ranks on the same machine.
    neighbours: Vec<(usize, u32)>,
}

impl Wait {
    fn new(limit: Duration) -> Self {
        Self { limit, neighbours: Vec::new() }
    }

    /// Called now and then while a rank waits.
    ///
    /// # Errors
    /// [`Error::Lost`]: the time is over, or a process of this machine has ended.
    pub fn check(&self, since: Instant) -> Result<()> {
        for &(rank, pid) in &self.neighbours {
            if members::has_ended(pid) {
                let what = format!("rank {rank} (process {pid} on this machine) has ended");
                return Err(Error::Lost { what });
            }
        }
        if since.elapsed() > self.limit { Err(self.over()) } else { Ok(()) }
    }

    fn over(&self) -> Error {
        let seconds = self.limit.as_secs_f64();
        Error::Lost { what: format!("no answer from the other ranks for {seconds} s") }
    }
}

/// What was exchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Bytes that this rank sent to others in sums of gradients.
    pub bytes: u64,
    /// Seconds that these sums took.
    pub seconds: f64,
}

/// A group of ranks, as one of them sees it. Clones are the same rank.
#[derive(Clone, Debug)]
pub struct Group {
    transport: Arc<dyn Transport>,
    members: Arc<[Member]>,
    wait: Wait,
    wait_data: Duration,
    /// Whether the ranks have agreed to end, or cannot agree any more.
    ended: Arc<AtomicBool>,
    /// Whether an exchange failed.
    lost: Arc<AtomicBool>,
    traffic: Arc<Mutex<Traffic>>,
}

impl Default for Group {
    fn default() -> Self {
        Self::alone()
    }
}

impl Group {
    /// One process.
    pub fn alone() -> Self {
        let (wait, data) = (Duration::from_secs(WAIT), Duration::from_secs(WAIT_DATA));
        Self::new(Arc::new(Alone), wait, data).expect("nobody to wait for")
    }

    /// The ranks of a transport, which wait for each other at most for `wait`, and for `wait_data` while data are read.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn new(transport: Arc<dyn Transport>, wait: Duration, wait_data: Duration) -> Result<Self> {
        let mut group = Self {
            transport,
            members: Arc::new([]),
            wait: Wait::new(wait),
            wait_data,
            ended: Arc::default(),
            lost: Arc::default(),
            traffic: Arc::default(),
        };
        let own = Member::current();
        if group.size() == 1 {
            group.members = Arc::new([own]);
            return Ok(group);
        }
        let texts = group.gather_bytes(own.to_bytes())?;
        group.members = texts.iter().map(|text| Member::from_bytes(text)).collect();
        let others = group
            .members
            .iter()
            .enumerate()
            .filter(|(_, other)| other.machine == own.machine && other.pid != own.pid);
        group.wait.neighbours = others.map(|(rank, other)| (rank, other.pid)).collect();
        Ok(group)
    }

    /// The number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.transport.rank()
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.transport.size()
    }

    /// Whether this is rank 0: the one that writes and speaks.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// All ranks.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Tells at any time whether this rank speaks for all: rank 0 does, or the first one that is left.
    pub fn speaker(&self) -> impl Fn() -> bool + Send + use<> {
        let (members, rank) = (self.members.clone(), self.rank());
        move || members::speaks(&members, rank)
    }

    /// Whether this is the first rank of its machine.
    pub fn is_first_of_machine(&self) -> bool {
        let own = &self.members[self.rank()].machine;
        self.members[..self.rank()].iter().all(|other| other.machine != *own)
    }

    /// How many threads this rank has for itself: those of its cores, shared with the ranks that may use the same ones.
    pub fn threads(&self) -> usize {
        let own = &self.members[self.rank()];
        let sharing = |other: &&Member| other.machine == own.machine && other.cores == own.cores;
        let ranks = self.members.iter().filter(sharing).count();
        (std::thread::available_parallelism().map_or(1, usize::from) / ranks.max(1)).max(1)
    }

    /// The same group with the longer limit, for while data are read.
    pub fn patient(&self) -> Self {
        let limit = self.wait_data.max(self.wait.limit);
        Self { wait: Wait { limit, ..self.wait.clone() }, ..self.clone() }
    }

    /// What was exchanged so far.
    pub fn traffic(&self) -> Traffic {
        *self.traffic.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether other ranks do not answer any more; a rank's own error may hide that.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// Ends all ranks at once: for when the group [is lost](Self::is_lost) and cannot agree any more.
    pub fn abort(&self, code: i32) -> ! {
        self.transport.abort(code)
    }

    /// Whether the ranks have agreed to end, or cannot agree any more.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// This rank's own result if all ranks have one.
    ///
    /// # Errors
    /// This rank's own error, or [`Error::Peer`] with that of the first rank that has one.
    pub fn agree<T>(&self, result: Result<T>) -> Result<T> {
        Ok(self.agree_with(result, false, 0)?.value)
    }

    /// As [`agree`](Self::agree); tells also whether any rank wants to stop, and a number of each.
    pub(crate) fn agree_with<T>(
        &self,
        result: Result<T>,
        stop: bool,
        number: u64,
    ) -> Result<Agreement<T>> {
        if self.size() == 1 {
            return Ok(Agreement { value: result?, stop, numbers: vec![number] });
        }
        let status = [u64::from(result.is_err()), u64::from(stop), number];
        let words = match self.gather_words(status.to_vec(), &vec![3; self.size()]) {
            Ok(words) => words,
            // This rank's own error says more than that the others are gone.
            Err(lost) => return Err(result.err().unwrap_or(lost)),
        };
        let words: Vec<&[u64]> = words.chunks(3).collect();
        if words.iter().all(|word| word[0] == 0) {
            let stop = words.iter().any(|word| word[1] != 0);
            let numbers = words.iter().map(|word| word[2]).collect();
            return Ok(Agreement { value: result?, stop, numbers });
        }
        let own = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let texts = self.gather_bytes(own.into_bytes());
        self.ended.store(true, Ordering::SeqCst);
        result?;
        let rank = words.iter().position(|word| word[0] != 0).unwrap_or(0);
        let what = String::from_utf8_lossy(&texts?[rank]).into_owned();
        Err(Error::Peer { rank, host: self.members[rank].host.clone(), what })
    }

    /// Does pieces 0 to `own` − 1 of this rank's work, of which no rank has more than `most`. After every [`ROUND`] of
    /// them the ranks agree on whether to continue, so that an error or a stop reaches all within as many. `piece` says
    /// whether to continue; returns false if any rank stopped.
    ///
    /// # Errors
    /// As [`agree`](Self::agree).
    pub(crate) fn in_rounds(
        &self,
        own: usize,
        most: usize,
        piece: &mut dyn FnMut(usize) -> Result<bool>,
    ) -> Result<bool> {
        for start in (0..most).step_by(ROUND) {
            let mut proceeds = Ok(true);
            for i in start..(start + ROUND).min(own) {
                proceeds = piece(i);
                if !matches!(proceeds, Ok(true)) {
                    break;
                }
            }
            let stops = matches!(proceeds, Ok(false));
            if self.agree_with(proceeds, stops, 0)?.stop {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The last agreement: unless there was one already that ends the group, the ranks learn how each of them ended.
    pub(crate) fn finish<T>(&self, result: Result<T>) -> Result<T> {
        if self.size() == 1 || self.has_ended() {
            return result;
        }
        match result {
            Ok(value) => self.agree(Ok(value)),
            Err(error) => {
                let own = self.agree::<()>(Err(error));
                own.map(|()| unreachable!("an error was put in"))
            }
        }
    }

    /// The bytes of rank 0, on every rank; those of the others are ignored.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn share(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let bytes = if self.is_first() { bytes } else { Vec::new() };
        Ok(self.gather_bytes(bytes)?.swap_remove(0))
    }

    /// The numbers of rank 0, on every rank, bit for bit.
    pub(crate) fn share_floats(&self, numbers: Vec<f32>) -> Result<Vec<f32>> {
        let numbers = if self.is_first() { numbers } else { Vec::new() };
        let lengths = self.gather_words(vec![numbers.len() as u64], &vec![1; self.size()])?;
        let counts: Vec<usize> = lengths.into_iter().map(|length| length as usize).collect();
        self.gather(numbers, &counts)
    }

    /// The shards of this rank, of `shards` in all.
    pub fn shards(&self, shards: usize) -> Range<usize> {
        tree::shards_of_rank(shards, self.rank(), self.size())
    }

    /// Σ over all shards by the [`tree`]; `parts` are the sums of this rank's [`nodes`](tree::nodes), of equal length.
    ///
    /// Each rank adds up one slice of the numbers: the slices of all nodes come to it, and its sum goes to all. For
    /// ranks with one node each, this moves 2·(K − 1)/K times the numbers, and no algorithm moves fewer.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub(crate) fn sum(&self, shards: usize, mut parts: Vec<Vec<f32>>) -> Result<Vec<f32>> {
        let (rank, size) = (self.rank(), self.size());
        if size == 1 {
            return Ok(parts.swap_remove(0));
        }
        let begin = Instant::now();
        let length = parts[0].len();
        let slices: Vec<Range<usize>> =
            (0..size).map(|rank| tree::shards_of_rank(length, rank, size)).collect();
        let mut outgoing = Vec::with_capacity(parts.len() * length);
        for slice in &slices {
            parts.iter().for_each(|part| outgoing.extend_from_slice(&part[slice.clone()]));
        }
        let send: Vec<usize> = slices.iter().map(|slice| slice.len() * parts.len()).collect();
        let own = slices[rank].len();
        let nodes_of = |rank| tree::nodes(shards, &tree::shards_of_rank(shards, rank, size));
        let nodes: Vec<Vec<Range<usize>>> = (0..size).map(nodes_of).collect();
        let receive: Vec<usize> = nodes.iter().map(|nodes| nodes.len() * own).collect();
        let incoming = self.watched(self.transport.swap(outgoing, &send, &receive, &self.wait))?;
        let nodes: Vec<Range<usize>> = nodes.into_iter().flatten().collect();
        let mine = tree::sum(0..shards, &mut |node| {
            let place = nodes.iter().position(|known| known == node);
            Ok::<_, Error>(place.map(|i| incoming[i * own..(i + 1) * own].to_vec()))
        })?;
        let counts: Vec<usize> = slices.iter().map(Range::len).collect();
        let total = self.gather(mine, &counts)?;
        let sent = parts.len() * length - send[rank] + own * (size - 1);
        let mut traffic = self.traffic.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        traffic.bytes += 4 * sent as u64;
        traffic.seconds += begin.elapsed().as_secs_f64();
        Ok(total)
    }

    /// The parts of all ranks; `counts` are their lengths.
    pub(crate) fn gather(&self, mine: Vec<f32>, counts: &[usize]) -> Result<Vec<f32>> {
        self.watched(self.transport.gather(mine, counts, &self.wait))
    }

    /// The parts of all ranks; `counts` are their lengths.
    pub(crate) fn gather_words(&self, mine: Vec<u64>, counts: &[usize]) -> Result<Vec<u64>> {
        self.watched(self.transport.gather_words(mine, counts, &self.wait))
    }

    /// The words of every rank, of any number.
    pub(crate) fn gather_lists(&self, mine: Vec<u64>) -> Result<Vec<Vec<u64>>> {
        let lengths = self.gather_words(vec![mine.len() as u64], &vec![1; self.size()])?;
        let counts: Vec<usize> = lengths.into_iter().map(|length| length as usize).collect();
        let mut all = self.gather_words(mine, &counts)?.into_iter();
        Ok(counts.iter().map(|&count| all.by_ref().take(count).collect()).collect())
    }

    /// The bytes of every rank.
    fn gather_bytes(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let word = |bytes: &[u8]| {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(padded)
        };
        let words = std::iter::once(mine.len() as u64).chain(mine.chunks(8).map(word));
        let lists = self.gather_lists(words.collect())?;
        let bytes = |list: Vec<u64>| {
            let length = list.first().map_or(0, |&length| length as usize);
            let bytes = list.iter().skip(1).flat_map(|word| word.to_le_bytes());
            bytes.take(length).collect()
        };
        Ok(lists.into_iter().map(bytes).collect())
    }

    /// After a failed exchange there are no others.
    fn watched<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|_| {
            self.lost.store(true, Ordering::SeqCst);
            self.ended.store(true, Ordering::SeqCst);
        })
    }
}

/// What the ranks have agreed on.
pub(crate) struct Agreement<T> {
    /// This rank's own result.
    pub(crate) value: T,
    /// Whether any rank wants to stop.
    pub(crate) stop: bool,
    /// The number of each rank.
    pub(crate) numbers: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `work` on every rank of a group of threads; what each returned.
    fn together<T: Send>(size: usize, work: impl Fn(Group) -> T + Sync) -> Vec<T> {
        let second = Duration::from_secs(1);
        std::thread::scope(|scope| {
            let start = |member: Threads| {
                let work = &work;
                scope.spawn(move || work(Group::new(Arc::new(member), second, second).unwrap()))
            };
            let ranks: Vec<_> = Threads::members(size).into_iter().map(start).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn sums_have_the_same_bits_for_any_number_of_ranks() {
        let shards = 12;
        // 7 numbers: fewer than some groups have ranks.
        let leaf = |shard: usize| -> Vec<f32> {
            (0..7).map(|i| ((i * 13 + shard * 7) as f32).sin() * 3f32.powi(shard as i32)).collect()
        };
        let sums = |size| {
            together(size, |group| {
                let nodes = tree::nodes(shards, &group.shards(shards)).into_iter();
                let part = |node| {
                    tree::sum(node, &mut |node| {
                        Ok::<_, Error>((node.len() == 1).then(|| leaf(node.start)))
                    })
                };
                let parts = nodes.map(|node| part(node).unwrap()).collect();
                (group.sum(shards, parts).unwrap(), group.traffic().bytes)
            })
        };
        let alone = sums(1).remove(0).0;
        for size in [2, 3, 4, 5, 8, 12] {
            let all = sums(size);
            assert!(all.iter().all(|(sum, _)| *sum == alone), "{size} ranks");
        }
        // Two ranks, one node each: half of the numbers there, half of them back.
        assert_eq!(sums(2).iter().map(|(_, bytes)| bytes).sum::<u64>(), 2 * 4 * 7);
    }

    #[test]
    fn the_first_error_reaches_all_and_a_stop_too() {
        let ends = together(3, |group| {
            let agreed = group.agree_with(Ok(group.rank()), group.rank() == 2, 5).unwrap();
            assert!(agreed.stop && agreed.numbers == [5, 5, 5] && agreed.value == group.rank());
            let own =
                if group.rank() == 1 { Err(Error::Mismatch("disk full".into())) } else { Ok(()) };
            let error = group.agree(own).unwrap_err().to_string();
            (error, group.has_ended())
        });
        for (rank, (error, ended)) in ends.into_iter().enumerate() {
            assert!(ended && error.contains("disk full"), "{error}");
            assert_eq!(error.starts_with("rank 1 on "), rank != 1, "{error}");
        }
    }

    #[test]
    fn a_rank_that_fails_meets_the_others_at_their_next_agreement() {
        let ends = together(2, |group| {
            let result = match group.rank() {
                0 => Err(Error::Mismatch("it failed between agreements".into())),
                _ => group.agree(Ok(7)),
            };
            group.finish(result).unwrap_err().to_string()
        });
        assert!(ends.iter().all(|error| error.contains("between agreements")), "{ends:?}");
    }

    #[test]
    fn an_error_or_a_stop_between_rounds_reaches_all() {
        let (own, most) = ([21, 21, 20], 21);
        for (rank, fails) in [(0, true), (1, false), (2, true)] {
            let ends = together(3, |group| {
                let mut done = 0;
                let proceeds = group.in_rounds(own[group.rank()], most, &mut |i| {
                    assert_eq!(i, done);
                    done += 1;
                    match (group.rank() == rank && i == 6, fails) {
                        (true, true) => Err(Error::Mismatch("disk full".into())),
                        (here, _) => Ok(!here),
                    }
                });
                (done, proceeds.map_err(|error| error.to_string()))
            });
            for (other, (done, proceeds)) in ends.into_iter().enumerate() {
                assert_eq!(done, if other == rank { 7 } else { 2 * ROUND });
                match fails {
                    true => assert!(proceeds.unwrap_err().contains("disk full")),
                    false => assert!(!proceeds.unwrap()),
                }
            }
        }
        let all = together(3, |group| {
            let mut done = 0;
            let mut piece = |_| {
                done += 1;
                Ok(true)
            };
            (group.in_rounds(own[group.rank()], most, &mut piece).unwrap(), done)
        });
        assert_eq!(all, own.map(|count| (true, count)));
    }

    #[test]
    fn every_wait_ends() {
        let begin = Instant::now();
        let ends = together(3, |group| {
            let own = match group.rank() {
                0 => group.agree(Ok(())),
                // Its own error is worth more than that the others are gone.
                1 => group.agree(Err(Error::Mismatch("disk full".into()))),
                _ => return (String::new(), false),
            };
            (own.unwrap_err().to_string(), group.is_lost())
        });
        assert!(ends[0].0.contains("has ended") && ends[0].1, "{ends:?}");
        assert!(ends[1].0.contains("disk full") && ends[1].1, "{ends:?}");
        let ends = together(2, |group| match group.rank() {
            0 => group.agree(Ok(())).map_err(|error| error.to_string()),
            _ => {
                std::thread::sleep(Duration::from_millis(1500));
                Ok(())
            }
        });
        assert!(ends[0].as_ref().unwrap_err().contains("no answer"), "{ends:?}");
        assert!(begin.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn bytes_of_any_length_arrive() {
        for length in [0, 1, 7, 8, 9, 1000] {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 7) as u8).collect();
            let got = together(3, |group| {
                let mine = if group.is_first() { bytes.clone() } else { vec![1; 3] };
                group.share(mine).unwrap()
            });
            assert!(got.iter().all(|got| *got == bytes));
        }
    }
}
