//! Ranks that are threads of one process: for tests.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use super::{Transport, Wait};
use crate::error::{Error, Result};

enum Message {
    Floats(Vec<f32>),
    Words(Vec<u64>),
}

/// One of several threads that hold a channel to each other. A thread that drops its member is lost to the others.
pub struct Threads {
    rank: usize,
    to: Vec<Sender<Message>>,
    from: Vec<Mutex<Receiver<Message>>>,
}

impl Threads {
    /// The members of a group of `size` threads, by rank.
    pub fn members(size: usize) -> Vec<Self> {
        let mut members: Vec<Self> =
            (0..size).map(|rank| Self { rank, to: Vec::new(), from: Vec::new() }).collect();
        for sender in 0..size {
            for receiver in 0..size {
                let (to, from) = channel();
                members[sender].to.push(to);
                members[receiver].from.push(Mutex::new(from));
            }
        }
        members
    }

    fn send(&self, rank: usize, message: Message) -> Result<()> {
        self.to[rank].send(message).map_err(|_| ended(rank))
    }

    fn receive(&self, rank: usize, wait: &Wait) -> Result<Message> {
        let from = self.from[rank].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        from.recv_timeout(wait.limit).map_err(|error| match error {
            RecvTimeoutError::Timeout => wait.over(),
            RecvTimeoutError::Disconnected => ended(rank),
        })
    }

    fn floats(&self, wait: &Wait) -> Result<Vec<f32>> {
        let mut all = Vec::new();
        for rank in 0..self.size() {
            match self.receive(rank, wait)? {
                Message::Floats(part) => all.extend(part),
                Message::Words(_) => return Err(out_of_step(rank)),
            }
        }
        Ok(all)
    }
}

fn ended(rank: usize) -> Error {
    Error::Lost { what: format!("rank {rank} has ended") }
}

fn out_of_step(rank: usize) -> Error {
    Error::Lost { what: format!("rank {rank} is at another place of the program") }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {} threads", self.rank, self.to.len())
    }
}

impl Transport for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn gather(&self, mine: Vec<f32>, _: &[usize], wait: &Wait) -> Result<Vec<f32>> {
        for rank in 0..self.size() {
            self.send(rank, Message::Floats(mine.clone()))?;
        }
        self.floats(wait)
    }

    fn gather_words(&self, mine: Vec<u64>, _: &[usize], wait: &Wait) -> Result<Vec<u64>> {
        for rank in 0..self.size() {
            self.send(rank, Message::Words(mine.clone()))?;
        }
        let mut all = Vec::new();
        for rank in 0..self.size() {
            match self.receive(rank, wait)? {
                Message::Words(part) => all.extend(part),
                Message::Floats(_) => return Err(out_of_step(rank)),
            }
        }
        Ok(all)
    }

    fn swap(&self, parts: Vec<f32>, send: &[usize], _: &[usize], wait: &Wait) -> Result<Vec<f32>> {
        let mut rest = parts.as_slice();
        for (rank, &count) in send.iter().enumerate() {
            let (part, others) = rest.split_at(count);
            self.send(rank, Message::Floats(part.to_vec()))?;
            rest = others;
        }
        self.floats(wait)
    }

    fn abort(&self, code: i32) -> ! {
        panic!("a thread gave up with code {code}")
    }
}
