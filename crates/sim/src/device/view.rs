//! The state of a device at one time, for display.

use super::Command;
use headstack_model::{Instant, Lbn, QuantityReport};
use std::ops::Range;

/// The arm's kind of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArmWork {
    /// Nothing.
    #[default]
    Idle,
    /// A read.
    Read,
    /// Reading blocks after the last read, in case they are requested next.
    ReadAhead,
    /// A write.
    Write,
    /// Cached writes.
    Destage,
}

impl ArmWork {
    /// All kinds of work.
    pub const ALL: [ArmWork; 5] =
        [ArmWork::Idle, ArmWork::Read, ArmWork::ReadAhead, ArmWork::Write, ArmWork::Destage];

    /// Its name: `idle`, `read`, `read-ahead`, `write` or `destage`.
    pub fn name(self) -> &'static str {
        ["idle", "read", "read-ahead", "write", "destage"][self as usize]
    }
}

/// The visible state of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceView {
    /// The arm's cylinder, or the destination of its seek.
    pub cylinder: u32,
    /// The head in use there.
    pub head: u32,
    /// The block after the last access, or after the one in progress.
    pub lbn: Lbn,
    /// The arm's work.
    pub work: ArmWork,
    /// Commands that it has.
    pub queued: usize,
    /// Commands that it can have.
    pub depth: usize,
    /// Blocks in its cache that are not on the media.
    pub dirty_sectors: u64,
}

impl DeviceView {
    /// Adds the state of the arm, the queue and the cache.
    pub fn report(&self, into: &mut QuantityReport) {
        into.gauge("cylinder", self.cylinder, "Cylinder that the arm is on, or on its way to");
        into.gauge("head", self.head, "Head in use");
        into.gauge("lbn", self.lbn.0, "Block behind the last access");
        into.gauge("queued", self.queued, "Commands that the drive has");
        into.gauge("queue_depth", self.depth, "Commands that the drive can have");
        into.gauge(
            "dirty_blocks",
            self.dirty_sectors,
            "Blocks in the drive's cache that are not on the media",
        );
        into.list("work", ArmWork::ALL, |work, into| {
            into.fact("work", work.name()).label("work");
            into.gauge("arm", self.work == work, "What the arm is at work for");
        });
    }
}

/// The visible state of the persistent cache of a drive-managed shingled disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShingleView {
    /// Blocks of its log.
    pub log_sectors: u64,
    /// Blocks of the log that can be written.
    pub free_sectors: u64,
    /// The blocks of the band that is being cleaned.
    pub cleaned_band: Option<Range<Lbn>>,
}

/// A command that a device has and has not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutstandingCommand {
    /// The request, with its priority and deadline.
    pub command: Command,
    /// When it was submitted.
    pub submitted: Instant,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, DeviceOptions};
    use headstack_model::{Instant, Request, drives};

    fn device(name: &str) -> Device {
        let spec = drives::load(name).expect("the drive is shipped");
        Device::new(&spec, &DeviceOptions::default()).expect("the drive is good")
    }

    #[test]
    fn view_shows_the_arm_at_the_target_of_its_access() {
        let mut device = device("atlas-10k");
        assert_eq!(device.view().work, ArmWork::Idle);
        device.submit(Instant::ZERO, Request::read(Lbn(9_000_000), 8)).expect("the queue is empty");
        device.handle_timeout(Instant::from_ms(1.0));
        let view = device.view();
        let place = device.drive().geometry.extent_at(Lbn(9_000_000));
        assert_eq!((view.cylinder, view.head, view.lbn), (place.cylinder, place.head, Lbn(9_000_008)));
        assert_eq!((view.work, view.queued), (ArmWork::Read, 1));
    }

    #[test]
    fn cached_writes_stay_dirty_until_destaged() {
        let mut device = device("st2000dm006");
        device.submit(Instant::ZERO, Request::write(Lbn(8_000_000), 64)).expect("the queue is empty");
        device.handle_timeout(Instant::from_ms(2.0));
        assert!(device.poll_completion().is_some(), "it is in the cache");
        assert_eq!(device.view().dirty_sectors, 64);
        device.handle_timeout(Instant::from_secs(5));
        assert_eq!((device.view().dirty_sectors, device.view().lbn), (0, Lbn(8_000_064)));
    }
}
