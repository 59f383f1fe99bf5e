//! The accesses of a drive without a buffer: each sector must cross the bus as it passes under the head.
//!
//! Modelled: a register of one sector, so that a sector read crosses the bus while the next one passes, and a sector written
//! while the one before it passes. The drive requests the bus so that the data can begin to cross with the first sector. If it has
//! the bus too late, it releases it, loses whole revolutions, and requests it again for the same sector. Once it has the bus, it
//! keeps it to the last sector of the access, head switches and seeks between tracks included. On a bus slower than the media each
//! sector takes a revolution; the two rates are compared on the first and the last track of the access. Where transfers share a
//! rate, and the rest of it is too little for the access, the drive loses as many whole revolutions as the transfer lasts longer.
//!
//! Not modelled: sector interleave, which spaced out the sectors of a track to suit a slow bus; a bus that is released between two
//! tracks of an access; a request for the bus that is withdrawn when its sector has passed: the drive takes part in one
//! arbitration more.
//!
//! *Source:* Gray, "Disk Optimization" (2000), ch. 2: without a buffer, a drive that finds the bus busy waits for a full revolution.

use super::config::BusRules;
use super::disk::DiskArm;
use super::drive::Drive;
use super::job::Job;
use super::media::{Arm, Arriving, Delivered, Room, Span};
use super::pass::Pass;
use super::slow::PlannedAccess;
use crate::link::Transfer;
use headstack_model::{Instant, Lbn, Nanos};

/// An access that waits for the bus.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassingAccess {
    pub(super) is_write: bool,
    /// When its first sector passes, and how long before that its data must begin to cross the bus.
    first: Instant,
    ahead: Nanos,
    /// When the arm is done with it, and when its data have crossed.
    pub(super) media_end: Instant,
    pub(super) crossed: Instant,
}

/// All data of a write are in time: the bus is won before the write begins.
const IN_TIME: Arriving = Arriving { begins: Instant::ZERO, bus_sector: 0, least: 0 };

impl PassingAccess {
    /// Plans a read from `begins` on.
    pub(super) fn read(disk: &mut DiskArm, job: &mut Job, begins: Instant, bus: &BusRules) -> PassingAccess {
        let (start, end) = (job.command.request.lbn, job.command.request.end());
        let arm = Arm { place: disk.arm.place, at: begins };
        let pass = disk.drive.plan(&disk.last_extent, arm, start, end - start, false);
        let sector = bus.read_time(1);
        let mut span = if pass.takes_time() && sector > shortest_sector(&disk.drive, &pass, end) {
            read_singly(&disk.drive, arm, pass, end, sector)
        } else {
            disk.drive.read_in_order(arm.at, pass, end, &mut Delivered::nowhere())
        };
        let access = PlannedAccess { begins, ends: span.end, blocks: start..end };
        let retries = disk.retry_time(job.found_idle, start) + disk.slowness_time(access);
        let lost = retries + disk.slow_time(start, end);
        span.delay_media(lost);
        let travel = disk.travel_to(pass.place());
        disk.account(job, &span, travel);
        job.account_retries(retries);
        disk.move_to_end(&span, end);
        let first = pass.begins + lost;
        let crossed = (span.end + sector).max(first + bus.read_time(end - start));
        PassingAccess { is_write: false, first, ahead: Nanos::ZERO, media_end: span.end, crossed }
    }

    /// Plans a write from `begins` on, whose data the log of media writes has.
    pub(super) fn write(disk: &mut DiskArm, job: &mut Job, begins: Instant, bus: &BusRules) -> PassingAccess {
        let (start, end) = (job.command.request.lbn, job.command.request.end());
        let (arm, _) = disk.write_arm(begins, start);
        let pass = disk.drive.plan(&disk.last_extent, arm, start, end - start, true);
        let sector = bus.write_time(1);
        let is_slow = pass.takes_time() && sector > shortest_sector(&disk.drive, &pass, end);
        // Through a buffer of one sector the next one's data are always late: it is written a revolution later.
        let room = if is_slow { Room { sectors: 1, left: 0, reconnect: sector } } else { Room::ENDLESS };
        let (retries, delay) = (disk.retry_time(job.found_idle, start), disk.write_delay(start, end));
        let (mut span, travel) = disk.write_span(begins, start..end, start..end, IN_TIME, room);
        let retries =
            retries + disk.slowness_time(PlannedAccess { begins, ends: span.end, blocks: start..end });
        disk.put_off(&mut span, retries);
        disk.arm.at = span.end;
        disk.account(job, &span, travel);
        job.account_retries(retries);
        // The data of the first sector cross before it passes; where all sectors are written at once, so do all data.
        let ahead = if pass.takes_time() { 1 } else { end - start };
        let (first, ahead) = (pass.begins + retries + delay, bus.write_time(ahead));
        PassingAccess { is_write: true, first, ahead, media_end: span.end, crossed: span.end }
    }

    /// When to request the port, for a bus that is won `lead` after its request.
    pub(super) fn request_at(&self, lead: Nanos) -> Instant {
        self.first.saturating_sub(self.ahead + lead)
    }

    /// By how much data are too late that could begin to cross at `begins`.
    pub(super) fn late_by(&self, begins: Instant) -> Nanos {
        (begins + self.ahead).since(self.first)
    }

    /// The transfer of its data, if nothing else slows it.
    pub(super) fn transfer(&self, bytes: u64) -> Transfer {
        let begins = self.first.saturating_sub(self.ahead);
        Transfer { begins, least: self.crossed - begins, bytes, to_host: !self.is_write }
    }

    /// Delays the access by the whole revolutions that make up for `late`.
    pub(super) fn lose_turns(&mut self, disk: &mut DiskArm, job: &mut Job, late: Nanos) {
        let turn = disk.turns(1);
        let lost = Nanos(turn.0 * late.0.div_ceil(turn.0));
        self.first += lost;
        self.media_end += lost;
        self.crossed += lost;
        disk.lose(lost, job);
    }
}

/// The shorter of the times of a sector on the first and on the last track of an access up to `end`.
fn shortest_sector(drive: &Drive, first: &Pass, end: Lbn) -> Nanos {
    let last = drive.geometry.extent_at(Lbn(end.0 - 1));
    let turn = drive.mechanics.spindle().period();
    first.sector(drive).min(Nanos(turn.0 / u64::from(last.sectors_per_track)))
}

/// Reads blocks from the start of `pass` up to `end` one by one, each once the one before has crossed the bus, which takes `crosses`.
fn read_singly(drive: &Drive, arm: Arm, pass: Pass, end: Lbn, crosses: Nanos) -> Span {
    let turn = drive.mechanics.spindle().period();
    let mut span = Span::default();
    let (mut from, mut pass) = (arm.at, Pass { sectors: 1, ..pass });
    loop {
        let ends = pass.end(drive);
        span.add(from, &pass, ends);
        if pass.end_lbn() >= end {
            return span;
        }
        from = ends;
        pass = drive.plan(&pass.extent, span.arm(), pass.end_lbn(), 1, false);
        while pass.end(drive) < ends + crosses {
            pass.begins += turn;
        }
    }
}
