//! Zones of a shingled disk: their states, write pointers, and the commands of ZBC and ZAC. The module has no clock and stores no data.
//!
//! Modelled: conventional zones and zones that are written in sequence, host-managed and host-aware; explicit and implicit open with a
//! limit of open zones, a limit of zones that are open or closed; reads anywhere, beyond the write pointer and across zones too (URSWRZ). Not
//! modelled: zones that are read-only or offline, conversion between kinds of zones.
//!
//! *Source:* Zoned Block Commands (INCITS 536-2016), zone conditions and their transitions.

use crate::{Lbn, Op, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Who keeps writes in sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ZoneModel {
    /// The host: a write elsewhere than at a write pointer is refused.
    HostManaged,
    /// The host should: a write elsewhere is accepted.
    HostAware,
}

/// How a disk is divided into zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneLayout {
    /// Who keeps writes in sequence.
    pub model: ZoneModel,
    /// Blocks of the disk. The last zone may be shorter than the others.
    pub sectors: u64,
    /// Blocks of a zone.
    pub zone_sectors: u64,
    /// Number of conventional zones, the first of the disk, which may be written anywhere.
    pub conventional: u32,
    /// Maximum number of zones that may be open at a time.
    pub open_max: u32,
    /// Maximum number of zones that may be open or closed at a time; none for no limit.
    pub active_max: Option<u32>,
}

impl ZoneLayout {
    /// Number of zones.
    pub fn zones(&self) -> u32 {
        self.sectors.div_ceil(self.zone_sectors) as u32
    }
}

/// The state of a zone (ZBC: zone condition).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Without a write pointer.
    Conventional,
    /// The write pointer is at its start.
    Empty,
    /// A write opened it; the disk closes it where another zone needs the room.
    ImplicitlyOpen,
    /// A command opened it.
    ExplicitlyOpen,
    /// Written in part, and not open.
    Closed,
    /// No more can be written.
    Full,
}

impl ZoneState {
    /// Every state.
    pub const ALL: [ZoneState; 6] = {
        use ZoneState::*;
        [Conventional, Empty, ImplicitlyOpen, ExplicitlyOpen, Closed, Full]
    };

    /// Its name, as reports have it.
    pub fn name(self) -> &'static str {
        match self {
            ZoneState::Conventional => "conventional",
            ZoneState::Empty => "empty",
            ZoneState::ImplicitlyOpen => "implicitly open",
            ZoneState::ExplicitlyOpen => "explicitly open",
            ZoneState::Closed => "closed",
            ZoneState::Full => "full",
        }
    }

    fn is_open(self) -> bool {
        matches!(self, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen)
    }

    fn is_active(self) -> bool {
        self.is_open() || self == ZoneState::Closed
    }
}

/// A zone as a report shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskZone {
    /// Its first block.
    pub start: Lbn,
    /// Its number of blocks.
    pub sectors: u64,
    /// Its state.
    pub state: ZoneState,
    /// The block at which the next sequential write begins. For a conventional zone it is the zone's start, for a full one the block
    /// after its last.
    pub write_pointer: Lbn,
}

/// A command on one zone, or on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneCommand {
    /// Opens it explicitly. On all zones: the closed ones.
    Open,
    /// Closes it. On all zones: the open ones.
    Close,
    /// Makes it full. On all zones: the open and the closed ones.
    Finish,
    /// Makes it empty. Its data are lost.
    Reset,
}

/// Why a request or a command is refused. A refused one changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum ZoneRefusal {
    /// ZBC: unaligned write command.
    #[error("the write begins at block {lbn}, and the write pointer of its zone is at {pointer}", lbn = .lbn.0, pointer = .pointer.0)]
    NotAtPointer { lbn: Lbn, pointer: Lbn },
    /// ZBC: write boundary violation.
    #[error("the write ends beyond its zone, whose last block is {}", .end.0 - 1)]
    AcrossZones { end: Lbn },
    #[error("the zone from block {} on is full", .start.0)]
    Full { start: Lbn },
    /// ZBC: insufficient zone resources.
    #[error("{open} zones are explicitly open, the most that can be; close one first")]
    TooManyOpen { open: u32 },
    #[error("{active} zones are open or closed, the most that can be; finish or reset one first")]
    TooManyActive { active: u32 },
    #[error("the zone from block {} on is conventional and has no write pointer", .start.0)]
    Conventional { start: Lbn },
}

/// The zones of a disk.
#[derive(Clone, Debug)]
pub struct Zones {
    layout: ZoneLayout,
    states: Vec<ZoneState>,
    pointers: Vec<Lbn>,
    /// The implicitly open zones, the one written least recently first.
    implicit: Vec<u32>,
    explicit: u32,
    closed: u32,
}

impl Zones {
    /// The zones of a new disk: all but the conventional ones are empty.
    pub fn new(layout: ZoneLayout) -> Zones {
        let count = layout.zones();
        let state =
            |zone| if zone < layout.conventional { ZoneState::Conventional } else { ZoneState::Empty };
        Zones {
            layout,
            states: (0..count).map(state).collect(),
            pointers: (0..count).map(|zone| Lbn(u64::from(zone) * layout.zone_sectors)).collect(),
            implicit: Vec::new(),
            explicit: 0,
            closed: 0,
        }
    }

    /// Makes all zones full, except the conventional ones.
    pub fn full(mut self) -> Zones {
        for zone in self.layout.conventional..self.layout.zones() {
            self.pointers[zone as usize] = self.end(zone);
            self.states[zone as usize] = ZoneState::Full;
        }
        self
    }

    /// The zones of a disk after a restart: of each zone, the first `written` blocks are written, and none is open. Entries of conventional zones
    /// are ignored.
    ///
    /// Panics if there is not one number per zone, or a number exceeds its zone's blocks.
    pub fn with_written(mut self, written: &[u64]) -> Zones {
        assert_eq!(written.len(), self.states.len(), "each zone has a number of blocks");
        for zone in self.layout.conventional..self.layout.zones() {
            let pointer = self.start(zone) + written[zone as usize];
            assert!(pointer <= self.end(zone), "zone {zone} has fewer blocks");
            self.pointers[zone as usize] = pointer;
            if pointer == self.end(zone) { self.set(zone, ZoneState::Full) } else { self.close(zone) }
        }
        self
    }

    /// How the disk is divided.
    pub fn layout(&self) -> &ZoneLayout {
        &self.layout
    }

    /// All zones, by their first block.
    pub fn iter(&self) -> impl Iterator<Item = DiskZone> {
        (0..self.states.len() as u32).map(|zone| self.zone(zone))
    }

    /// The zone of this number. Panics if there is none.
    pub fn zone(&self, zone: u32) -> DiskZone {
        let (state, write_pointer) = (self.states[zone as usize], self.pointers[zone as usize]);
        let (start, end) = (self.start(zone), self.end(zone));
        DiskZone { start, sectors: end - start, state, write_pointer }
    }

    /// The number of a block's zone.
    pub fn number_at(&self, lbn: Lbn) -> u32 {
        (lbn.0 / self.layout.zone_sectors) as u32
    }

    /// Number of zones that are open.
    pub fn open(&self) -> u32 {
        self.explicit + self.implicit.len() as u32
    }

    /// Number of zones that are open or closed.
    pub fn active(&self) -> u32 {
        self.open() + self.closed
    }

    fn start(&self, zone: u32) -> Lbn {
        Lbn(u64::from(zone) * self.layout.zone_sectors)
    }

    fn end(&self, zone: u32) -> Lbn {
        Lbn(((u64::from(zone) + 1) * self.layout.zone_sectors).min(self.layout.sectors))
    }

    /// Accepts a request on blocks of the disk, and moves the write pointer of a write.
    ///
    /// *Errors:* it is not allowed.
    pub fn accept(&mut self, request: &Request) -> Result<(), ZoneRefusal> {
        match request.op {
            Op::Flush | Op::Read => Ok(()),
            Op::Write => self.write(request),
        }
    }

    /// Number of blocks from the start of a read up to the last one that is or may be written: the blocks after it need no access.
    pub fn written(&self, request: &Request) -> u64 {
        let last = self.number_at(Lbn(request.end().0 - 1));
        let mut end = request.lbn;
        for zone in self.number_at(request.lbn)..=last {
            match self.states[zone as usize] {
                ZoneState::Conventional | ZoneState::Full => end = self.end(zone),
                ZoneState::Empty => {}
                _ => end = end.max(self.pointers[zone as usize]),
            }
        }
        end.min(request.end()) - request.lbn
    }

    fn write(&mut self, request: &Request) -> Result<(), ZoneRefusal> {
        let zone = self.number_at(request.lbn);
        let (lbn, end) = (request.lbn, request.end());
        let is_managed = self.layout.model == ZoneModel::HostManaged;
        if self.states[zone as usize] == ZoneState::Conventional {
            let last = self.number_at(Lbn(end.0 - 1));
            return if last < self.layout.conventional {
                Ok(())
            } else {
                Err(ZoneRefusal::AcrossZones { end: self.start(self.layout.conventional) })
            };
        }
        if end > self.end(zone) {
            return Err(ZoneRefusal::AcrossZones { end: self.end(zone) });
        }
        let (state, pointer) = (self.states[zone as usize], self.pointers[zone as usize]);
        if state == ZoneState::Full {
            // A host-aware disk rewrites it in place.
            return if is_managed { Err(ZoneRefusal::Full { start: self.start(zone) }) } else { Ok(()) };
        }
        if is_managed && lbn != pointer {
            return Err(ZoneRefusal::NotAtPointer { lbn, pointer });
        }
        if state != ZoneState::ExplicitlyOpen {
            self.open_zone(zone, ZoneState::ImplicitlyOpen)?;
        }
        self.pointers[zone as usize] = pointer.max(end);
        if self.pointers[zone as usize] == self.end(zone) {
            self.set(zone, ZoneState::Full);
        }
        Ok(())
    }

    /// Carries out a command on a zone. It changes nothing where the zone is in the state already.
    ///
    /// *Errors:* the zone is conventional, or no more zones may be open or active. Panics if there is no such zone.
    pub fn command(&mut self, command: ZoneCommand, zone: u32) -> Result<(), ZoneRefusal> {
        let state = self.states[zone as usize];
        if state == ZoneState::Conventional {
            return Err(ZoneRefusal::Conventional { start: self.start(zone) });
        }
        match command {
            ZoneCommand::Open if state == ZoneState::Full => {}
            ZoneCommand::Open => self.open_zone(zone, ZoneState::ExplicitlyOpen)?,
            ZoneCommand::Close if state.is_open() => self.close(zone),
            ZoneCommand::Close => {}
            ZoneCommand::Finish => {
                self.pointers[zone as usize] = self.end(zone);
                self.set(zone, ZoneState::Full);
            }
            ZoneCommand::Reset => {
                self.pointers[zone as usize] = self.start(zone);
                self.set(zone, ZoneState::Empty);
            }
        }
        Ok(())
    }

    /// Carries out a command on all zones that it concerns.
    ///
    /// *Errors:* no more zones may be open; nothing has changed then.
    pub fn command_all(&mut self, command: ZoneCommand) -> Result<(), ZoneRefusal> {
        if command == ZoneCommand::Open && self.explicit + self.closed > self.layout.open_max {
            return Err(ZoneRefusal::TooManyOpen { open: self.explicit });
        }
        let concerns = |state: ZoneState| match command {
            ZoneCommand::Open => state == ZoneState::Closed,
            ZoneCommand::Close => state.is_open(),
            ZoneCommand::Finish => state.is_active(),
            ZoneCommand::Reset => state.is_active() || state == ZoneState::Full,
        };
        let zones: Vec<u32> =
            (0..self.states.len() as u32).filter(|zone| concerns(self.states[*zone as usize])).collect();
        zones.into_iter().try_for_each(|zone| self.command(command, zone))
    }

    /// Closes the open zones after a power cut. For each zone that was open, closed or full, `kept` returns the new write pointer: how far the
    /// zone is on the media, from its start to at most the former pointer. A full zone that lost nothing stays full.
    pub fn lose_power(&mut self, mut kept: impl FnMut(&DiskZone) -> Lbn) {
        for zone in 0..self.states.len() as u32 {
            let state = self.states[zone as usize];
            if !state.is_active() && state != ZoneState::Full {
                continue;
            }
            let before = self.zone(zone);
            let pointer = kept(&before).clamp(before.start, before.write_pointer);
            if state != ZoneState::Full || pointer < before.write_pointer {
                self.pointers[zone as usize] = pointer;
                self.close(zone);
            }
        }
    }

    /// Opens a zone that is not open explicitly; at the limit, first closes the implicitly open zone that was written least recently.
    fn open_zone(&mut self, zone: u32, how: ZoneState) -> Result<(), ZoneRefusal> {
        let state = self.states[zone as usize];
        if !state.is_active() && self.layout.active_max.is_some_and(|most| self.active() >= most) {
            return Err(ZoneRefusal::TooManyActive { active: self.active() });
        }
        if !state.is_open() && self.open() >= self.layout.open_max {
            let Some(oldest) = self.implicit.first().copied() else {
                return Err(ZoneRefusal::TooManyOpen { open: self.explicit });
            };
            self.close(oldest);
        }
        self.set(zone, how);
        Ok(())
    }

    /// Closes a zone; one without data is empty then.
    fn close(&mut self, zone: u32) {
        let is_empty = self.pointers[zone as usize] == self.start(zone);
        self.set(zone, if is_empty { ZoneState::Empty } else { ZoneState::Closed });
    }

    /// Sets a state, and counts it.
    fn set(&mut self, zone: u32, state: ZoneState) {
        match std::mem::replace(&mut self.states[zone as usize], state) {
            ZoneState::ImplicitlyOpen => self.implicit.retain(|open| *open != zone),
            ZoneState::ExplicitlyOpen => self.explicit -= 1,
            ZoneState::Closed => self.closed -= 1,
            _ => {}
        }
        match state {
            ZoneState::ImplicitlyOpen => self.implicit.push(zone),
            ZoneState::ExplicitlyOpen => self.explicit += 1,
            ZoneState::Closed => self.closed += 1,
            _ => {}
        }
    }
}
