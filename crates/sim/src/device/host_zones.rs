//! The zones of a disk that its host writes in sequence.
//!
//! A read beyond the write pointers is answered like a hit of the cache. No command only resets a zone: a write at the first block of a
//! full zone resets it first, and so does a write at the first block of any other zone if it says so. The reset takes no time.

use super::Command;
use super::commands::Commands;
use super::record::Record;
use headstack_model::zones::{ZoneCommand, ZoneRefusal, ZoneState, Zones};
use headstack_model::{DriveSpec, Lbn, Request};
use std::collections::BTreeSet;
use std::ops::Range;

/// The zones, and what they refused.
#[derive(Debug)]
pub(super) struct HostZones {
    pub(super) zones: Zones,
    /// The number of requests refused, and the first one with the reason.
    pub(super) refused: u64,
    pub(super) first_refused: Option<(Request, ZoneRefusal)>,
    /// With a media-write log, the zones of which written blocks are not yet on the media, and those that were reset.
    moved: Option<BTreeSet<u32>>,
    was_reset: bool,
}

impl HostZones {
    pub(super) fn from_spec(spec: &DriveSpec) -> Option<Box<HostZones>> {
        let keys = spec.zones.as_ref()?;
        let empty = Zones::new(keys.layout(spec.capacity_sectors));
        let zones = if keys.full_at_first { empty.full() } else { empty };
        Some(Box::new(HostZones { zones, refused: 0, first_refused: None, moved: None, was_reset: false }))
    }

    pub(super) fn track_media(&mut self) {
        self.moved = Some(BTreeSet::new());
    }

    /// Whether a read lies wholly beyond the write pointers.
    #[cold]
    pub(super) fn is_unwritten(&self, request: &Request) -> bool {
        self.zones.written(request) == 0
    }

    /// Sets the number of written blocks of each zone, counted from its start.
    pub(super) fn restore(&mut self, written: &[u64]) {
        self.zones = Zones::new(*self.zones.layout()).with_written(written);
    }

    /// Moves write pointers back to what is on the media, because the power is cut.
    pub(super) fn lose_power(&mut self, record: &Record, commands: &Commands) {
        self.zones.lose_power(|zone| first_waiting(zone.start..zone.write_pointer, record, commands));
        self.was_reset = true;
    }

    /// As [`Device::report_zones`](super::Device::report_zones).
    pub(super) fn report(
        &mut self,
        has_settled: bool,
        record: &Record,
        commands: &Commands,
        report: &mut dyn FnMut(u32, u64),
    ) {
        let HostZones { zones, moved: Some(moved), was_reset, .. } = self else { return };
        if !std::mem::take(was_reset) && !has_settled {
            return;
        }
        moved.retain(|number| {
            let zone = zones.zone(*number);
            let first = first_waiting(zone.start..zone.write_pointer, record, commands);
            report(*number, first - zone.start);
            first < zone.write_pointer
        });
    }

    /// Whether the zones allow a write, which is inside the disk.
    #[cold]
    pub(super) fn allow(&mut self, command: &Command) -> bool {
        let request = &command.request;
        let number = self.zones.number_at(request.lbn);
        let zone = self.zones.zone(number);
        let is_sequential = zone.state != ZoneState::Conventional;
        let is_reset = zone.state == ZoneState::Full || is_sequential && command.resets_zone;
        if is_reset && zone.start == request.lbn {
            self.zones.command(ZoneCommand::Reset, number).expect("the zone is not conventional");
            self.was_reset = true;
        }
        if let (Some(moved), true) = (&mut self.moved, is_sequential) {
            moved.insert(number);
        }
        let Err(refusal) = self.zones.accept(request) else { return true };
        self.refused += 1;
        self.first_refused.get_or_insert((*request, refusal));
        false
    }
}

/// The first of these blocks that a write has not yet brought to the media; their end if there is none.
fn first_waiting(blocks: Range<Lbn>, record: &Record, commands: &Commands) -> Lbn {
    record.first_waiting(blocks.clone()).min(commands.first_of_writes(blocks))
}
