//! The zones of a disk that its host writes in sequence.
//!
//! A read beyond the write pointers is answered as a hit of the cache is. Loads have no command that resets a zone: a write at the first
//! block of a full zone resets it first, which takes no time.

use headstack_model::zones::{ZoneCommand, ZoneRefusal, ZoneState, Zones};
use headstack_model::{DriveSpec, Lbn, Request};
use std::ops::Range;

/// The zones, and what they refused.
#[derive(Debug)]
pub(super) struct HostZones {
    pub(super) zones: Zones,
    /// The number of requests refused, and the first one with the reason.
    pub(super) refused: u64,
    pub(super) first_refused: Option<(Request, ZoneRefusal)>,
}

impl HostZones {
    pub(super) fn from_spec(spec: &DriveSpec) -> Option<Box<HostZones>> {
        let keys = spec.zones.as_ref()?;
        let empty = Zones::new(keys.layout(spec.capacity_sectors));
        let zones = if keys.full_at_first { empty.full() } else { empty };
        Some(Box::new(HostZones { zones, refused: 0, first_refused: None }))
    }

    /// Whether a read lies beyond the write pointers.
    #[cold]
    pub(super) fn is_unwritten(&self, request: &Request) -> bool {
        self.zones.written(request) == 0
    }

    /// The power is cut: write pointers go back to what is on the media. `first_waiting` gives the first of some blocks that is not.
    pub(super) fn lose_power(&mut self, first_waiting: impl Fn(Range<Lbn>) -> Lbn) {
        self.zones.lose_power(|zone| first_waiting(zone.start..zone.write_pointer));
    }

    /// Whether the zones allow a write, which is inside the disk.
    #[cold]
    pub(super) fn allow(&mut self, request: &Request) -> bool {
        let number = self.zones.number_at(request.lbn);
        let zone = self.zones.zone(number);
        if zone.state == ZoneState::Full && zone.start == request.lbn {
            self.zones.command(ZoneCommand::Reset, number).expect("a full zone is not conventional");
        }
        let Err(refusal) = self.zones.accept(request) else { return true };
        self.refused += 1;
        self.first_refused.get_or_insert((*request, refusal));
        false
    }
}
