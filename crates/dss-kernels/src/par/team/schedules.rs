//! The protocol under many schedules of its threads, each of which can be replayed.

#[path = "protocol.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "the same code with the scheduler's atomics")]
mod protocol;

/// As the module of the same name, with a scheduler between any two operations.
mod sync {
    pub(super) use shuttle::sync::atomic::{AtomicUsize, Ordering};
    use std::cell::UnsafeCell;

    pub(super) fn pause(_: usize) -> bool {
        shuttle::thread::yield_now();
        true
    }

    /// Notices when a read or a write meets a write.
    pub(super) struct TaskCell<T> {
        value: UnsafeCell<T>,
        readers: AtomicUsize,
        writers: AtomicUsize,
    }

    impl<T: Copy> TaskCell<T> {
        pub(super) fn new(value: T) -> Self {
            let [readers, writers] = [AtomicUsize::new(0), AtomicUsize::new(0)];
            Self { value: UnsafeCell::new(value), readers, writers }
        }

        /// # Safety
        /// One thread runs at a time.
        pub(super) unsafe fn write(&self, value: T) {
            assert_eq!(self.writers.fetch_add(1, Ordering::SeqCst), 0, "two writers");
            assert_eq!(self.readers.load(Ordering::SeqCst), 0, "written while it was read");
            // SAFETY: by the caller's promise.
            unsafe { *self.value.get() = value };
            self.writers.fetch_sub(1, Ordering::SeqCst);
        }

        /// # Safety
        /// One thread runs at a time.
        pub(super) unsafe fn read(&self) -> T {
            self.readers.fetch_add(1, Ordering::SeqCst);
            assert_eq!(self.writers.load(Ordering::SeqCst), 0, "read while it was written");
            // SAFETY: by the caller's promise.
            let value = unsafe { *self.value.get() };
            self.readers.fetch_sub(1, Ordering::SeqCst);
            value
        }
    }
}

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use protocol::{OnDrop, Team};
use sync::{AtomicUsize, Ordering::SeqCst};

/// Calls `work` with a team of `helpers`, as `together` does.
fn with_team(helpers: usize, work: impl FnOnce(&Team)) {
    let team = Arc::new(Team::new());
    let threads: Vec<_> = (1..=helpers)
        .map(|worker| {
            let team = team.clone();
            shuttle::thread::spawn(move || team.help(worker, || {}))
        })
        .collect();
    {
        let _part = OnDrop(|| team.part());
        work(&team);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Loops in which each item is taken by whoever comes first. What a loop uses is gone when it ends, so that a helper
/// who comes too late would be noticed.
fn every_item_of_every_loop_is_done_once() {
    const ITEMS: usize = 3;
    with_team(2, |team| {
        for _ in 0..2 {
            let (next, alive) = (AtomicUsize::new(0), AtomicUsize::new(1));
            let done = [const { AtomicUsize::new(0) }; ITEMS];
            let inside = [const { AtomicUsize::new(0) }; 3];
            team.lead(&|worker| {
                assert_eq!(inside[worker].fetch_add(1, SeqCst), 0, "once per loop and worker");
                loop {
                    let item = next.fetch_add(1, SeqCst);
                    if item >= ITEMS {
                        break;
                    }
                    done[item].fetch_add(1, SeqCst);
                }
                assert_eq!(alive.load(SeqCst), 1, "a helper is inside a loop that has ended");
            });
            alive.store(0, SeqCst);
            assert!(done.iter().all(|count| count.load(SeqCst) == 1));
        }
    });
}

/// A leader that panics waits for its helpers before the task goes.
fn a_panic_waits_for_the_helpers() {
    with_team(1, |team| {
        let alive = AtomicUsize::new(1);
        let led = catch_unwind(AssertUnwindSafe(|| {
            team.lead(&|worker| {
                if worker == 0 {
                    std::panic::resume_unwind(Box::new("leader"));
                }
                assert_eq!(alive.load(SeqCst), 1, "a helper is inside a loop that has ended");
            });
        }));
        alive.store(0, SeqCst);
        assert!(led.is_err());
        team.lead(&|_| {});
    });
}

#[test]
fn the_protocol_holds_under_every_schedule_tried() {
    const SCHEDULES: usize = 3000;
    for scene in [every_item_of_every_loop_is_done_once, a_panic_waits_for_the_helpers] {
        shuttle::check_random(scene, SCHEDULES);
        shuttle::check_pct(scene, SCHEDULES, 3);
    }
}
