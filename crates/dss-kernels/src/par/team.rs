//! Threads that go from one parallel loop to the next without falling asleep.
//!
//! An operation is made of many short loops. To wake a thread for each of them, and to be woken at its end, takes as long
//! as a loop itself. So a team is called once per operation: its helpers, which are jobs of rayon, wait for the next loop
//! in a loop of their own. The leader never waits for a helper that has not come: it may do all the work alone.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// What a worker does in a loop, given its number.
type Task<'a> = dyn Fn(usize) + Sync + 'a;

/// How often a thread looks before it offers its core to others.
const LOOKS: usize = 4096;

/// The turn of a team that has parted.
const PARTED: usize = usize::MAX;

struct Team {
    /// Odd while a loop is under way.
    turn: AtomicUsize,
    /// Helpers that may be using the task.
    inside: AtomicUsize,
    /// Written by the leader while no loop is under way; read by helpers inside one.
    task: UnsafeCell<Option<*const Task<'static>>>,
}

// SAFETY: `task` is written and read at different turns, and what it points to is `Sync`.
unsafe impl Sync for Team {}

thread_local! {
    /// The team that this thread leads and that is not in a loop.
    static LEADS: Cell<Option<*const Team>> = const { Cell::new(None) };
}

/// Calls `work`, for whose loops a team is ready.
pub(super) fn together<R>(work: impl FnOnce() -> R) -> R {
    let helpers = rayon::current_num_threads() - 1;
    if helpers == 0 || LEADS.get().is_some() {
        return work();
    }
    let team = Team {
        turn: AtomicUsize::new(0),
        inside: AtomicUsize::new(0),
        task: UnsafeCell::new(None),
    };
    rayon::in_place_scope(|scope| {
        for helper in 1..=helpers {
            let team = &team;
            scope.spawn(move |_| team.help(helper));
        }
        let _part = Finally(|| {
            LEADS.set(None);
            team.turn.store(PARTED, SeqCst);
        });
        LEADS.set(Some(&raw const team));
        work()
    })
}

/// Calls `task(worker)` on this thread, as worker 0, and on those helpers that come in time.
pub(super) fn run(task: &Task<'_>) {
    let Some(team) = LEADS.take() else { return together(|| run(task)) };
    let _lead = Finally(|| LEADS.set(Some(team)));
    // SAFETY: whoever leads a team is inside `together`, where it lives.
    unsafe { &*team }.lead(task);
}

impl Team {
    fn lead(&self, task: &Task<'_>) {
        // SAFETY: only the lifetime changes; helpers use the task while this function runs. No loop is under way, so
        // no helper reads.
        unsafe {
            let task = std::mem::transmute::<*const Task<'_>, *const Task<'static>>(task);
            *self.task.get() = Some(task);
        }
        self.turn.fetch_add(1, SeqCst);
        let _end = Finally(|| {
            self.turn.fetch_add(1, SeqCst);
            wait_until(|| self.inside.load(SeqCst) == 0);
        });
        task(0);
    }

    fn help(&self, worker: usize) {
        let mut done = 0;
        loop {
            let mut turn = 0;
            wait_until(|| {
                turn = self.turn.load(SeqCst);
                turn % 2 == 1 && turn != done
            });
            if turn == PARTED {
                return;
            }
            self.inside.fetch_add(1, SeqCst);
            let _leave = Finally(|| {
                self.inside.fetch_sub(1, SeqCst);
            });
            // The loop may have ended meanwhile; if it has not, the leader now waits for this helper.
            if self.turn.load(SeqCst) == turn {
                // SAFETY: a loop is under way, and does not end before this helper has left.
                unsafe { (*self.task.get()).map(|task| (*task)(worker)) };
                done = turn;
            }
        }
    }
}

/// Waits without sleeping: what is waited for is about to happen.
fn wait_until(mut ready: impl FnMut() -> bool) {
    for look in 0.. {
        if ready() {
            return;
        }
        if look < LOOKS {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// Calls its function when dropped, by a panic as well.
struct Finally<F: Fn()>(F);

impl<F: Fn()> Drop for Finally<F> {
    fn drop(&mut self) {
        self.0();
    }
}

#[cfg(test)]
mod tests {
    use crate::par::{for_each, together};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap().install(work)
    }

    /// n loops, one after the other, over ever more items.
    fn many_loops(n: usize) -> Vec<usize> {
        let mut sums = vec![0; 4];
        for items in 0..n {
            for_each(&mut sums, items, |sum, item| *sum += item + 1);
        }
        sums
    }

    #[test]
    fn every_item_is_done_once() {
        let expected: usize = (0..200).map(|n| n * (n + 1) / 2).sum();
        for work in [|| many_loops(200), || together(|| many_loops(200))] {
            assert_eq!(work().iter().sum::<usize>(), expected);
            assert_eq!(in_pool(work).iter().sum::<usize>(), expected);
        }
    }

    /// A loop in an item of a loop, in a team within a team.
    #[test]
    fn loops_may_be_nested() {
        let nested = || {
            let mut sums = vec![0; 4];
            together(|| {
                for_each(&mut sums, 50, |sum, _| {
                    *sum += together(|| many_loops(20)).iter().sum::<usize>();
                });
            });
            sums.iter().sum::<usize>()
        };
        let expected = 50 * (0..20).map(|n| n * (n + 1) / 2).sum::<usize>();
        assert_eq!(nested(), expected);
        assert_eq!(in_pool(nested), expected);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_leaves_no_one_behind() {
        for bad in [0, 63] {
            let failing = || {
                let mut workers = vec![(); 4];
                together(|| {
                    for_each(&mut workers, 64, |(), item| assert!(item != bad, "item {item}"));
                });
            };
            in_pool(|| {
                assert!(catch_unwind(AssertUnwindSafe(failing)).is_err());
                assert_eq!(many_loops(9).iter().sum::<usize>(), 120);
            });
        }
    }
}
