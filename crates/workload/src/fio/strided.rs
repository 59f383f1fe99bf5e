//! `zonemode=strided`: requests stay within a zone of the file until `zonesize` bytes were transferred there, and then go to the next zone.
//!
//! A zone is the first `zonerange` bytes from its start on; `zoneskip` bytes lie between it and the next. After the end of the file the
//! first zone follows. The bytes count for all files of a clone together. A further loop continues in the zone, unless the last loop reached
//! the end of the file, where a request no longer fits: then it begins again in the first zone.
//!
//! *Source:* HOWTO of fio 3.33, `zonemode=strided`, and what that version requests.

use super::settings::{Settings, ZoneMode};

/// The zones of a clone, and its progress in the present one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stride {
    /// Bytes to transfer in a zone.
    size: u64,
    /// Bytes of a zone.
    pub(super) range: u64,
    /// Bytes between two zones.
    skip: u64,
    done: u64,
}

impl Stride {
    pub(super) fn new(settings: &Settings) -> Option<Stride> {
        let zones = &settings.zones;
        let range = if zones.range == 0 { zones.size } else { zones.range };
        (zones.mode == ZoneMode::Strided).then_some(Stride {
            size: zones.size,
            range,
            skip: zones.skip.fixed(),
            done: 0,
        })
    }

    /// If the bytes of the present zone have been transferred, the distance to the next zone.
    pub(super) fn next_zone(&mut self) -> Option<u64> {
        if self.done < self.size {
            return None;
        }
        self.done = 0;
        Some(self.range.saturating_add(self.skip))
    }

    /// Whether the whole zone has been covered a number of times, or not at all: all its places are then free.
    pub(super) fn begins_pass(&self) -> bool {
        self.done.is_multiple_of(self.range)
    }

    /// Begins again in the first zone.
    pub(super) fn restart(&mut self) {
        self.done = 0;
    }

    pub(super) fn count(&mut self, bytes: u64) {
        self.done += bytes;
    }
}
