//! Threads that go from one parallel loop to the next without falling asleep.
//!
//! An operation is made of many short loops. To wake a thread for each of them, and to be woken at its end, takes as long
//! as a loop itself. So a team is called once per operation: its helpers, which are jobs of rayon, wait for the next loop
//! in a loop of their own. The leader never waits for a helper that has not come: it may do all the work alone.

mod protocol;
#[cfg(test)]
mod schedules;
mod sync;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use protocol::{OnDrop, Task, Team};

/// What a thread is doing for a team.
#[derive(Clone, Copy)]
enum Role {
    None,
    /// It leads the team, which is between loops.
    Leads(*const Team),
    /// It is inside a loop, or waits for the next one as a helper. It runs its own loops alone, and helps no one
    /// else: a leader that became its own team's helper, and a helper of two teams, would wait for themselves.
    Busy,
}

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::None) };
}

static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The limit of a process without rayon's threads: even to ask for their number might wait for ever there.
const ALONE: usize = 0;

pub(super) fn limit_threads(threads: usize) {
    let limit = |now| (now != ALONE).then_some(threads.max(1));
    // Refused: there is no way back from alone.
    let _ = LIMIT.fetch_update(Relaxed, Relaxed, limit);
}

pub(super) fn alone() {
    LIMIT.store(ALONE, Relaxed);
}

pub(super) fn workers() -> usize {
    if LIMIT.load(Relaxed) == ALONE { 1 } else { rayon::current_num_threads() }
}

/// Threads that may help the calling one.
fn helpers() -> usize {
    match LIMIT.load(Relaxed) {
        ALONE | 1 => 0,
        limit => rayon::current_num_threads().min(limit) - 1,
    }
}

/// Calls `work`, for whose loops a team is ready.
pub(super) fn together<R>(work: impl FnOnce() -> R) -> R {
    let helpers = helpers();
    if helpers == 0 || !matches!(ROLE.get(), Role::None) {
        return work();
    }
    let team = Team::new();
    rayon::in_place_scope(|scope| {
        for helper in 1..=helpers {
            let team = &team;
            scope.spawn(move |_| help(team, helper));
        }
        let _part = OnDrop(|| {
            ROLE.set(Role::None);
            team.part();
        });
        ROLE.set(Role::Leads(&raw const team));
        work()
    })
}

/// Calls `task(worker)` on this thread, as worker 0, and on those helpers that come in time.
pub(super) fn run(task: &Task<'_>) {
    match ROLE.get() {
        Role::Busy => task(0),
        Role::Leads(team) => {
            ROLE.set(Role::Busy);
            let _lead = OnDrop(|| ROLE.set(Role::Leads(team)));
            // SAFETY: whoever leads a team is inside `together`, where it lives.
            unsafe { &*team }.lead(task);
        }
        Role::None if helpers() == 0 => task(0),
        Role::None => together(|| run(task)),
    }
}

/// A helper's job, which rayon may hand to a thread that waits for something else in the middle of a loop.
fn help(team: &Team, helper: usize) {
    if matches!(ROLE.get(), Role::None) {
        let _leave = OnDrop(|| ROLE.set(Role::None));
        ROLE.set(Role::Busy);
        // Someone may wait for a job that only this thread can take.
        team.help(helper, || {
            let _ = rayon::yield_now();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{OnDrop, Team};
    use crate::par::{for_each, together};
    use rayon::prelude::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

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

    /// Calls `work` as the only one, and fails instead of waiting for ever.
    fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || send.send(work()));
        receive.recv_timeout(Duration::from_secs(60)).expect("done within a minute")
    }

    /// Long enough for every helper to come.
    fn linger() {
        std::thread::sleep(Duration::from_millis(2));
    }

    /// A loop in an item of a loop, in a team within a team.
    #[test]
    fn loops_may_be_nested() {
        let nested = || {
            let mut sums = vec![0; 4];
            together(|| {
                for_each(&mut sums, 50, |sum, _| {
                    linger();
                    *sum += together(|| many_loops(20)).iter().sum::<usize>();
                });
            });
            sums.iter().sum::<usize>()
        };
        let expected = 50 * (0..20).map(|n| n * (n + 1) / 2).sum::<usize>();
        assert_eq!(in_time(nested), expected);
        assert_eq!(in_time(move || in_pool(nested)), expected);
    }

    /// A thread that waits for a job of rayon takes others meanwhile, among them those that help a team.
    #[test]
    fn items_and_teams_may_use_rayon() {
        let sum = |n: usize| (0..n).into_par_iter().with_max_len(1).inspect(|_| linger()).sum();
        let mixed = move || {
            let mut sums = vec![0usize; 4];
            let between: usize = together(|| {
                let first: usize = sum(20);
                for_each(&mut sums, 20, |total, _| *total += sum(9));
                first + sum(20)
            });
            between + sums.iter().sum::<usize>()
        };
        let expected = 2 * 190 + 20 * 36;
        assert_eq!(in_time(mixed), expected);
        assert_eq!(in_time(move || in_pool(mixed)), expected);
    }

    /// As many leaders outside the pool as it has threads: all of these are helpers.
    #[test]
    fn leaders_outside_the_pool_may_use_rayon() {
        let done = in_time(|| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
            let all_inside = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                let lead = || {
                    let team = Team::new();
                    pool.in_place_scope(|scope| {
                        let team = &team;
                        scope.spawn(move |_| super::help(team, 1));
                        let _part = OnDrop(|| team.part());
                        linger();
                        all_inside.wait();
                        let sum = AtomicUsize::new(0);
                        team.lead(&|worker| {
                            if worker == 0 {
                                let found = pool.install(|| (0..10).into_par_iter().sum());
                                sum.store(found, SeqCst);
                            }
                        });
                        sum.into_inner()
                    })
                };
                [(); 2].map(|()| scope.spawn(lead)).map(|thread| thread.join().unwrap())
            })
        });
        assert_eq!(done, [45, 45]);
    }

    #[test]
    fn scratches_may_outnumber_the_threads() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(pool.install(|| many_loops(9)).iter().sum::<usize>(), 120);
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
