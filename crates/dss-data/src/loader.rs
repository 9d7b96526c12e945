//! Batches prepared on background threads and handed out in order.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use crate::{Batch, Dataset, Padding, Result, TaskSpec, collate};

/// The batches to make: everything that a batch depends on.
#[derive(Clone)]
pub struct BatchPlan {
    /// Where the examples come from.
    pub dataset: Arc<dyn Dataset>,
    /// Their shape.
    pub spec: TaskSpec,
    /// Numbers of the examples, in the order of use.
    pub order: Vec<u32>,
    /// Examples per batch.
    pub batch: usize,
    /// Whether to leave out a last batch that is not full.
    pub drop_last: bool,
    /// The length that batches are padded to.
    pub padding: Padding,
    /// Batches at the start that are not made at all (to resume in the middle of an epoch).
    pub skip_batches: usize,
}

impl BatchPlan {
    /// Batches in all, skipped ones included.
    fn batches(&self) -> usize {
        let n = self.order.len();
        if self.drop_last { n / self.batch } else { n.div_ceil(self.batch) }
    }

    /// Batch number `i`.
    fn make(&self, i: usize) -> Result<Batch> {
        let end = ((i + 1) * self.batch).min(self.order.len());
        let numbers = &self.order[i * self.batch..end];
        let examples = numbers.iter().map(|&n| self.dataset.example(n as usize));
        Ok(collate(&self.spec, examples.collect::<Result<_>>()?, self.padding))
    }
}

/// What a worker sends: a batch, an error of the data set, or its panic.
type Delivery = thread::Result<Result<Batch>>;

/// An iterator over the batches of a [`BatchPlan`]. At most `2 × threads` batches wait at any time; dropping it stops
/// the threads. After an error it ends; a panic of a data set is raised again where the batch is asked for.
///
/// The workers take turns: of T workers, number t makes the batches t, t + T, t + 2T, ..., so that their order is known.
pub struct Loader {
    /// Where each worker delivers, and the worker.
    workers: Vec<(Receiver<Delivery>, JoinHandle<()>)>,
    /// Batches that were handed out.
    taken: usize,
    total: usize,
}

const THREADS: usize = 2;

impl Loader {
    /// Starts making batches on two threads.
    ///
    /// # Panics
    /// If `batch` is 0.
    pub fn new(
        dataset: Arc<dyn Dataset>,
        spec: TaskSpec,
        order: Vec<u32>,
        batch: usize,
        drop_last: bool,
        padding: Padding,
        skip_batches: usize,
    ) -> Self {
        let plan = BatchPlan { dataset, spec, order, batch, drop_last, padding, skip_batches };
        Self::start(plan, THREADS)
    }

    /// Starts making batches on `threads` threads; the batches do not depend on their number.
    ///
    /// # Panics
    /// If the plan's `batch` or `threads` is 0.
    pub fn start(plan: BatchPlan, threads: usize) -> Self {
        assert!(plan.batch > 0, "a batch needs at least one example");
        assert!(threads > 0, "the loader needs at least one thread");
        let all = plan.batches();
        let first = plan.skip_batches.min(all);
        let threads = threads.min(all - first);
        let plan = Arc::new(plan);
        let worker = |number: usize| {
            // One batch waits here, and one in the hands of the worker.
            let (sender, receiver) = sync_channel(1);
            let plan = plan.clone();
            let work = move || {
                for i in (first + number..all).step_by(threads) {
                    let batch = catch_unwind(AssertUnwindSafe(|| plan.make(i)));
                    // Nobody waits for it: the loader was dropped.
                    if sender.send(batch).is_err() {
                        return;
                    }
                }
            };
            (receiver, thread::spawn(work))
        };
        Self { workers: (0..threads).map(worker).collect(), taken: 0, total: all - first }
    }
}

impl Iterator for Loader {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.taken >= self.total {
            return None;
        }
        let (receiver, _) = &self.workers[self.taken % self.workers.len()];
        let batch = receiver.recv().expect("a worker delivers all its batches");
        self.taken += 1;
        if !matches!(batch, Ok(Ok(_))) {
            self.taken = self.total;
        }
        Some(batch.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.total - self.taken;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Loader {}

impl Drop for Loader {
    fn drop(&mut self) {
        for (receiver, worker) in self.workers.drain(..) {
            drop(receiver);
            // Workers catch every panic of a data set, so there is nothing to learn from the result.
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::{BatchInput, Error, Example, Input, InputKind, Target, TargetKind, epoch_order};

    /// Example i is the token i + 1; one number may fail, one may panic.
    #[derive(Default)]
    struct Numbers {
        n: usize,
        fails: Option<usize>,
        panics: Option<usize>,
    }

    impl Dataset for Numbers {
        fn len(&self) -> usize {
            self.n
        }

        fn example(&self, i: usize) -> Result<Example> {
            if i.is_multiple_of(3) {
                thread::sleep(Duration::from_micros(300));
            }
            assert_ne!(Some(i), self.panics, "example {i} panics");
            if Some(i) == self.fails {
                return Err(Error::setting("seed", i, "fails"));
            }
            let input = Input::Tokens(vec![i as u32 + 1; 1 + i % 5]);
            Ok(Example { input, second: None, target: Target::Class(0) })
        }
    }

    fn plan(data: Numbers, batch: usize, drop_last: bool, skip_batches: usize) -> BatchPlan {
        let target = TargetKind::Class { labels: vec!["a".into()] };
        let input = InputKind::Tokens { vocab: 1000 };
        BatchPlan {
            order: epoch_order(data.n, 5, 0),
            dataset: Arc::new(data),
            spec: TaskSpec { name: "numbers".into(), input, target, len: 5, pair: false },
            batch,
            drop_last,
            padding: Padding::Longest,
            skip_batches,
        }
    }

    fn numbers(n: usize) -> Numbers {
        Numbers { n, ..Numbers::default() }
    }

    fn all(loader: Loader) -> Vec<Batch> {
        loader.map(|batch| batch.unwrap()).collect()
    }

    #[test]
    fn batches_do_not_depend_on_threads() {
        let one = all(Loader::start(plan(numbers(50), 4, false, 0), 1));
        for threads in [2, 3, 8, 40] {
            assert_eq!(one, all(Loader::start(plan(numbers(50), 4, false, 0), threads)));
        }
        let BatchInput::Tokens(first) = &one[0].input else { panic!() };
        assert_eq!(first[0], epoch_order(50, 5, 0)[0] as i32 + 1);
    }

    #[test]
    fn skipping_is_the_same_as_throwing_away() {
        let whole = all(Loader::start(plan(numbers(30), 4, false, 0), 2));
        for skip in 0..=9 {
            let loader = Loader::start(plan(numbers(30), 4, false, skip), 2);
            assert_eq!(loader.len(), whole.len().saturating_sub(skip));
            assert_eq!(all(loader), whole[skip.min(whole.len())..]);
        }
    }

    #[test]
    fn the_last_batch_is_partial_or_dropped() {
        let sizes = |drop_last| {
            let batches = all(Loader::start(plan(numbers(10), 4, drop_last, 0), 2));
            batches.iter().map(|b| b.examples).collect::<Vec<_>>()
        };
        assert_eq!((sizes(false), sizes(true)), (vec![4, 4, 2], vec![4, 4]));
        assert!(all(Loader::start(plan(numbers(0), 4, false, 0), 2)).is_empty());
    }

    #[test]
    fn an_error_comes_in_its_place_and_ends_the_batches() {
        let data = Numbers { fails: Some(epoch_order(40, 5, 0)[9] as usize), ..numbers(40) };
        let results: Vec<_> = Loader::start(plan(data, 4, false, 0), 3).collect();
        assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn a_panic_is_raised_again() {
        let data = Numbers { panics: Some(7), ..numbers(10) };
        let loader = Loader::start(plan(data, 2, false, 0), 2);
        let panic = catch_unwind(AssertUnwindSafe(|| all(loader))).unwrap_err();
        assert!(panic.downcast_ref::<String>().unwrap().contains("example 7 panics"));
    }

    #[test]
    fn look_ahead_is_bounded_and_dropping_stops() {
        let plan = plan(numbers(10_000), 1, false, 0);
        let data = plan.dataset.clone();
        let made = Arc::new(Counted(data, AtomicUsize::new(0)));
        let mut loader = Loader::start(BatchPlan { dataset: made.clone(), ..plan }, 2);
        loader.next().unwrap().unwrap();
        // One taken, four waiting, and no more.
        while made.1.load(Ordering::SeqCst) < 5 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(30));
        assert_eq!(made.1.load(Ordering::SeqCst), 5);
        drop(loader);
        assert_eq!(Arc::strong_count(&made), 1);
    }

    struct Counted(Arc<dyn Dataset>, AtomicUsize);

    impl Dataset for Counted {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn example(&self, i: usize) -> Result<Example> {
            self.1.fetch_add(1, Ordering::SeqCst);
            self.0.example(i)
        }
    }
}
