//! A controller's port: what the host's queue feeds in place of the drive behind it.

use super::HostError;
use super::target::Target;
use crate::device::{Command, Completion, QueueFull, Tag};
use headstack_model::Nanos;
use headstack_policy::elevator::DiskMap;
use std::collections::VecDeque;

/// Commands on their way to a controller, and those that it has ended.
#[derive(Debug)]
pub(super) struct Port {
    sectors: u64,
    sector_bytes: u32,
    depth: usize,
    outstanding: usize,
    /// Tags given out so far, and those free again.
    tags: u32,
    free: Vec<u32>,
    sent: VecDeque<(Tag, Command)>,
    done: VecDeque<Completion>,
}

impl Port {
    /// A port for so many commands that stands for such a drive.
    pub(super) fn new(sectors: u64, sector_bytes: u32, depth: usize) -> Port {
        Port {
            sectors,
            sector_bytes,
            depth,
            outstanding: 0,
            tags: 0,
            free: Vec::new(),
            sent: VecDeque::new(),
            done: VecDeque::new(),
        }
    }

    /// The next command for the controller.
    pub(super) fn take(&mut self) -> Option<(Tag, Command)> {
        self.sent.pop_front()
    }

    /// The controller has ended a command.
    pub(super) fn end(&mut self, completion: Completion) {
        self.outstanding -= 1;
        self.done.push_back(completion);
    }
}

impl Target for Port {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn submit(&mut self, _now: Nanos, command: Command) -> Result<Tag, QueueFull> {
        if self.outstanding == self.depth {
            return Err(QueueFull);
        }
        self.outstanding += 1;
        let tag = self.free.pop().unwrap_or_else(|| {
            self.tags += 1;
            self.tags - 1
        });
        self.sent.push_back((Tag(tag), command));
        Ok(Tag(tag))
    }

    fn poll_completion(&mut self) -> Option<Completion> {
        let completion = self.done.pop_front()?;
        self.free.push(completion.tag.0);
        Some(completion)
    }

    fn map(&self) -> Result<Box<dyn DiskMap>, HostError> {
        let message = "a controller stands before the drive, and chooses and caches by itself";
        Err(HostError::new("queue.knows", message))
    }
}
