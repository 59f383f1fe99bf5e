//! The target of a queue: a device, or a controller's port.

use super::map::TrackMap;
use crate::device::{Command, Completion, Device, QueueFull, Tag};
use crate::link::HostLink;
use headstack_model::Instant;
use headstack_model::spec::Fault;
use headstack_policy::elevator::DiskMap;

/// Accepts commands and completes them: a device, or a controller's port that represents one.
pub(super) trait Target {
    fn sectors(&self) -> u64;
    fn sector_bytes(&self) -> u32;
    fn depth(&self) -> usize;
    fn outstanding(&self) -> usize;
    /// The first block of the range of each of its arms; none for one arm.
    fn arm_firsts(&self) -> &[u64] {
        &[]
    }
    fn submit(&mut self, now: Instant, command: Command) -> Result<Tag, QueueFull>;
    /// Writes the next completion to `ended`; returns whether there was one.
    fn poll_into(&mut self, ended: &mut Completion) -> bool;
    /// The map of its blocks, for a host that has one.
    ///
    /// *Errors:* the target has no map.
    fn map(&self) -> Result<Box<dyn DiskMap>, Fault>;
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
    fn submit(&mut self, now: Instant, command: Command) -> Result<Tag, QueueFull> {
        Device::submit(self, now, command)
    }

    #[inline]
    fn poll_into(&mut self, ended: &mut Completion) -> bool {
        Device::poll_into(self, ended)
    }

    fn map(&self) -> Result<Box<dyn DiskMap>, Fault> {
        Ok(Box::new(TrackMap::of(self)))
    }
}

/// A device with the links that it shares.
pub(super) struct LinkedDevice<'a, 'b> {
    pub(super) device: &'a mut Device,
    pub(super) link: &'a mut HostLink<'b>,
}

impl Target for LinkedDevice<'_, '_> {
    fn sectors(&self) -> u64 {
        self.device.sectors()
    }

    fn sector_bytes(&self) -> u32 {
        self.device.sector_bytes()
    }

    fn depth(&self) -> usize {
        self.device.depth()
    }

    fn outstanding(&self) -> usize {
        self.device.outstanding()
    }

    fn submit(&mut self, now: Instant, command: Command) -> Result<Tag, QueueFull> {
        self.device.submit_over(self.link, now, command)
    }

    fn poll_into(&mut self, ended: &mut Completion) -> bool {
        self.device.poll_into(ended)
    }

    fn map(&self) -> Result<Box<dyn DiskMap>, Fault> {
        self.device.map()
    }
}
