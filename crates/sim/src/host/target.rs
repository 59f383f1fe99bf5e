//! What a queue of the host feeds, and what it is fed with.

use super::HostError;
use super::map::TrackMap;
use crate::device::{Command, Completion, Device, QueueFull, Tag};
use headstack_model::{Nanos, Request};
use headstack_policy::elevator::DiskMap;

/// What the engine asks of a station: a request, or one device's part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// The engine's number for what it belongs to.
    pub(crate) ask: u32,
    pub(crate) request: Request,
    pub(crate) source: u32,
    pub(crate) urgent: bool,
    /// Whether somebody waits for it.
    pub(crate) sync: bool,
}

/// Takes commands and ends them: a device, or a controller's port that stands for one.
pub(super) trait Target {
    fn sectors(&self) -> u64;
    fn sector_bytes(&self) -> u32;
    fn depth(&self) -> usize;
    fn outstanding(&self) -> usize;
    fn submit(&mut self, now: Nanos, command: Command) -> Result<Tag, QueueFull>;
    fn poll_completion(&mut self) -> Option<Completion>;
    /// Where its blocks lie, for a host that knows.
    ///
    /// *Errors:* nobody before it can know.
    fn map(&self) -> Result<Box<dyn DiskMap>, HostError>;
}

impl Target for Device {
    fn sectors(&self) -> u64 {
        Device::sectors(self)
    }

    fn sector_bytes(&self) -> u32 {
        Device::sector_bytes(self)
    }

    #[inline]
    fn depth(&self) -> usize {
        Device::depth(self)
    }

    #[inline]
    fn outstanding(&self) -> usize {
        Device::outstanding(self)
    }

    #[inline]
    fn submit(&mut self, now: Nanos, command: Command) -> Result<Tag, QueueFull> {
        Device::submit(self, now, command)
    }

    #[inline]
    fn poll_completion(&mut self) -> Option<Completion> {
        Device::poll_completion(self)
    }

    fn map(&self) -> Result<Box<dyn DiskMap>, HostError> {
        Ok(Box::new(TrackMap::of(self)))
    }
}

/// The place of a tag in a table of them. There are more tags than the depth only while completions wait to be taken.
#[inline]
pub(super) fn at_tag<T: Clone>(table: &mut Vec<T>, tag: u32, nothing: T) -> &mut T {
    let index = tag as usize;
    if index >= table.len() {
        table.resize(index + 1, nothing);
    }
    &mut table[index]
}
