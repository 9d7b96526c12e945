//! How a leader and its helpers share one loop after the other, without locks and without falling asleep.
//!
//! This file is compiled twice: with the atomics of the standard library, and, for the test that explores schedules,
//! with those of a scheduler. `super::sync` says which.

use super::sync::{AtomicUsize, Ordering::SeqCst, TaskCell, pause};

/// What a worker does in a loop, given its number.
pub(super) type Task<'a> = dyn Fn(usize) + Sync + 'a;

/// The turn of a team that has parted.
const PARTED: usize = usize::MAX;

pub(super) struct Team {
    /// Odd while a loop is under way.
    turn: AtomicUsize,
    /// Helpers that may be using the task.
    inside: AtomicUsize,
    /// Written by the leader while no loop is under way; read by helpers inside one.
    task: TaskCell<Option<*const Task<'static>>>,
}

// SAFETY: `task` is written and read at different turns, and what it points to is `Sync`.
unsafe impl Sync for Team {}
// SAFETY: as above.
unsafe impl Send for Team {}

impl Team {
    pub(super) fn new() -> Self {
        Self { turn: AtomicUsize::new(0), inside: AtomicUsize::new(0), task: TaskCell::new(None) }
    }

    /// Sends all helpers home. Only between loops.
    pub(super) fn part(&self) {
        self.turn.store(PARTED, SeqCst);
    }

    /// Calls `task(0)`, and `task(worker)` on those helpers that come in time; returns when all have left it.
    pub(super) fn lead(&self, task: &Task<'_>) {
        // SAFETY: only the lifetime changes; helpers use the task while this function runs. No loop is under way, so
        // no helper reads.
        unsafe {
            let task = std::mem::transmute::<*const Task<'_>, *const Task<'static>>(task);
            self.task.write(Some(task));
        }
        self.turn.fetch_add(1, SeqCst);
        let _end = OnDrop(|| {
            self.turn.fetch_add(1, SeqCst);
            wait_until(|| self.inside.load(SeqCst) == 0, || {});
        });
        task(0);
    }

    /// Takes part in every loop until the team parts; calls `idle` when it has waited for long.
    pub(super) fn help(&self, worker: usize, idle: impl Fn()) {
        let mut done = 0;
        loop {
            let mut turn = 0;
            let called = || {
                turn = self.turn.load(SeqCst);
                turn % 2 == 1 && turn != done
            };
            wait_until(called, &idle);
            if turn == PARTED {
                return;
            }
            self.inside.fetch_add(1, SeqCst);
            let _leave = OnDrop(|| {
                self.inside.fetch_sub(1, SeqCst);
            });
            // The loop may have ended meanwhile; if it has not, the leader now waits for this helper.
            if self.turn.load(SeqCst) == turn {
                // SAFETY: a loop is under way, and does not end before this helper has left.
                unsafe { self.task.read().map(|task| (*task)(worker)) };
                done = turn;
            }
        }
    }
}

/// Waits without sleeping: what is waited for is about to happen. If it has not happened for long, `idle` is called
/// between looks.
fn wait_until(mut ready: impl FnMut() -> bool, idle: impl Fn()) {
    let mut looks = 0;
    while !ready() {
        if pause(looks) {
            idle();
        }
        looks += 1;
    }
}

/// Calls its function when dropped, by a panic as well.
pub(super) struct OnDrop<F: Fn()>(pub(super) F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}
