//! The device's state, in groups.

use super::faults::Faults;
use super::host_transfer::Lent;
use super::job::Job;
use super::lost::Lost;
use super::recalibrate::Recalibrate;
use super::waiting::Waiting;
use headstack_model::spec::{Retries, Tagging};
use headstack_model::{Extent, Lbn, Nanos};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;

/// The commands that the device has.
#[derive(Debug)]
pub(super) struct Commands {
    /// By tag.
    pub(super) jobs: Vec<Job>,
    /// Tags that are free.
    pub(super) free: Vec<u32>,
    /// Commands that are done, each with when; their jobs keep the rest until they are polled.
    pub(super) done: VecDeque<(u32, Nanos)>,
    /// Commands that wait for the arm.
    pub(super) waiting: Waiting,
    /// Commands received and not done.
    pub(super) in_flight: usize,
    /// The one of them that must be alone.
    pub(super) alone: Option<u32>,
    /// How many may be outstanding.
    pub(super) depth: usize,
    pub(super) tagging: Tagging,
}

impl Commands {
    pub(super) fn new(depth: usize, tagging: Tagging, waiting: Waiting) -> Commands {
        Commands {
            // Those that are done and not yet polled have their tags, too.
            jobs: Vec::with_capacity(2 * depth),
            free: Vec::with_capacity(2 * depth),
            done: VecDeque::with_capacity(depth),
            waiting,
            in_flight: 0,
            alone: None,
            depth,
            tagging,
        }
    }
}

/// The disk's size.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskSize {
    pub(super) sectors: u64,
    pub(super) sector_bytes: u32,
    pub(super) cylinders: u32,
}

/// The last access.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastAccess {
    /// The run of blocks accessed last.
    pub(super) extent: Extent,
    /// Block after the last one accessed.
    pub(super) lbn: Lbn,
    pub(super) was_write: bool,
    /// Block after the last one read, and after the last one written, by a command.
    pub(super) read_end: Lbn,
    pub(super) write_end: Lbn,
}

impl LastAccess {
    /// None yet.
    pub(super) fn none() -> LastAccess {
        let nowhere = Lbn(u64::MAX);
        LastAccess {
            extent: Extent::default(),
            lbn: Lbn(0),
            was_write: false,
            read_end: nowhere,
            write_end: nowhere,
        }
    }
}

/// Random events: retries, lost revolutions, recalibrations.
#[derive(Debug)]
pub(super) struct Chance {
    pub(super) random: Pcg64Mcg,
    pub(super) retries: Option<Retries>,
    pub(super) lost: Option<Box<Lost>>,
    pub(super) recalibration: Option<Recalibrate>,
}

/// Faults and power.
#[derive(Debug)]
pub(super) struct Health {
    /// Whether the power was cut.
    pub(super) powered_off: bool,
    pub(super) faults: Option<Box<Faults>>,
    /// When the disk dies, or died; `Nanos::MAX` for never.
    pub(super) dies_at: Nanos,
}

/// The shared links to the host.
#[derive(Debug, Default)]
pub(super) struct SharedBus {
    /// The links, while the engine lends them.
    pub(super) lent: Option<Lent>,
    pub(super) is_shared: bool,
}
