//! The media's work for a run of blocks: seek, latency and transfer, track by track.
//!
//! A [`Pass`] is a run of sectors that pass under one head; a [`Span`] is the sum of all passes of an access. Everything is
//! computed when the access starts, so that no sector needs an event.

use super::drive::{Drive, track_of};
use super::pass::Pass;
use headstack_model::spec::{Delivery, ZeroLatency};
use headstack_model::{Angle, Extent, Instant, Lbn, Nanos, TrackPlace};
use std::ops::Range;

/// The arm's position, and the time from which it is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arm {
    pub(crate) place: TrackPlace,
    pub(crate) at: Instant,
}

/// The sum of an access's passes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) seek: Nanos,
    pub(crate) rotation: Nanos,
    pub(crate) media: Nanos,
    pub(crate) end: Instant,
    /// The last pass: the access leaves the arm there, and a read-ahead continues from there.
    pub(crate) last: Pass,
}

impl Span {
    pub(crate) fn add(&mut self, from: Instant, pass: &Pass, end: Instant) {
        self.last = *pass;
        self.count_last(from, end);
    }

    /// Adds the last pass, which ends at `end`, to the sums.
    #[inline]
    fn count_last(&mut self, from: Instant, end: Instant) {
        let pass = &self.last;
        self.seek += pass.on_track.since(from);
        self.rotation += pass.begins.since(pass.on_track.max(from));
        self.media += end - pass.begins;
        self.end = end;
    }

    pub(crate) fn append(&mut self, part: &Span) {
        self.seek += part.seek;
        self.rotation += part.rotation;
        self.media += part.media;
        (self.end, self.last) = (part.end, part.last);
    }

    pub(crate) fn arm(&self) -> Arm {
        Arm { place: self.last.place(), at: self.end }
    }

    /// Delays the access's transfer by revolutions lost before it.
    pub(crate) fn delay_media(&mut self, time: Nanos) {
        self.rotation += time;
        self.end += time;
    }

    /// The same for a read, whose data also arrive later.
    pub(crate) fn delay(&mut self, time: Nanos, delivered: &mut Delivered) {
        self.delay_media(time);
        delivered.bound += time;
        delivered.ready += time;
    }
}

/// The part of a read on which its data's transfer to the host depends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) end: Lbn,
    /// Block whose arrival starts the bus transfer.
    pub(crate) watermark: Lbn,
    /// Time of a sector on the bus, in 2⁻¹⁰ ns.
    pub(crate) bus_sector: u64,
    /// The earliest end of the transfer that the media allow.
    pub(crate) bound: Instant,
    /// When the bus may start.
    pub(crate) ready: Instant,
    pub(crate) order: Delivery,
}

impl Delivered {
    /// Delivery of an access without a transfer to the host.
    pub(crate) fn nowhere() -> Delivered {
        Delivered { watermark: Lbn(u64::MAX), ..Delivered::default() }
    }

    #[inline]
    pub(crate) fn bus_time(&self, sectors: u64) -> Nanos {
        Nanos((sectors * self.bus_sector) >> 10)
    }

    /// Adds a pass whose sectors arrive in order.
    fn add(&mut self, drive: &Drive, pass: &Pass, end: Instant) {
        let left = |from: Lbn| self.bus_time(self.end.0.saturating_sub(from.0));
        let first = pass.end_of(drive, 1) + left(pass.first);
        let last = end + left(Lbn(pass.end_lbn().0 - 1));
        self.bound = self.bound.max(first).max(last);
        if (pass.first..pass.end_lbn()).contains(&self.watermark) {
            self.ready = pass.end_of(drive, (self.watermark - pass.first) as u32 + 1);
        }
    }
}

pub(super) fn angle_of(extent: &Extent, lbn: Lbn) -> Angle {
    let units = (u128::from(lbn - extent.first) * u128::from(extent.sector_width)) >> 32;
    extent.angle + Angle(units as u32)
}

impl Drive {
    /// The next pass of an access: from `lbn` on, at most `most` sectors, with the arm coming from `arm`.
    ///
    /// `near` is a run of blocks that was looked up before and may contain `lbn` too.
    pub(crate) fn plan(&self, near: &Extent, arm: Arm, lbn: Lbn, most: u64, write: bool) -> Pass {
        let extent = match lbn.0.wrapping_sub(near.first.0) {
            into if into < u64::from(near.sectors) => *near,
            into if into == u64::from(near.sectors) && into > 0 => self.geometry.extent_after(near),
            _ => self.geometry.extent_at(lbn),
        };
        if let Some(access) = self.mechanics.constant_access() {
            // All of it at once, across tracks too: without seek or latency.
            let begins = arm.at + access;
            return Pass { first: lbn, sectors: most as u32, extent, on_track: begins, begins, width: 0 };
        }
        let on_track = arm.at + self.mechanics.reposition(arm.place, track_of(&extent), write);
        self.pass_from(&extent, on_track, lbn, most)
    }

    /// The next pass of a read, as [`Drive::plan`], for the common case that it continues along the arm's track.
    #[inline]
    pub(crate) fn plan_after(&self, near: &Extent, arm: Arm, lbn: Lbn, most: u64) -> Pass {
        let stays = near.contains(lbn) && track_of(near) == arm.place;
        if !stays || self.mechanics.constant_access().is_some() {
            return self.plan(near, arm, lbn, most, false);
        }
        self.pass_from(near, arm.at, lbn, most)
    }

    /// The pass of a run of blocks from `lbn` on, at most `most` sectors, with the head on its track at `on_track`.
    #[inline(always)]
    fn pass_from(&self, extent: &Extent, on_track: Instant, lbn: Lbn, most: u64) -> Pass {
        let begins = on_track + self.mechanics.spindle().wait(on_track, angle_of(extent, lbn));
        let left = u64::from(extent.sectors) - (lbn - extent.first);
        let width = extent.sector_width;
        Pass { first: lbn, sectors: left.min(most) as u32, extent: *extent, on_track, begins, width }
    }

    /// Seek, settle and rotational latency until `angle` of the track at `place` can be accessed.
    #[inline]
    pub(crate) fn positioning(&self, arm: Arm, place: TrackPlace, angle: Angle, write: bool) -> Nanos {
        if let Some(access) = self.mechanics.constant_access() {
            return access;
        }
        let seek = self.mechanics.reposition(arm.place, place, write);
        seek + self.mechanics.spindle().wait(arm.at + seek, angle)
    }

    /// Time in which this many sectors of a track pass.
    pub(crate) fn media_time(&self, extent: &Extent, sectors: u64) -> Nanos {
        let units = (u128::from(sectors) * u128::from(extent.sector_width)) >> 32;
        self.mechanics.spindle().time_of_units(units as u64)
    }

    pub(crate) fn target(&self, lbn: Lbn) -> (TrackPlace, Angle) {
        let extent = self.geometry.extent_at(lbn);
        (track_of(&extent), angle_of(&extent, lbn))
    }

    /// First block of the part of the track that passes completely between the arrival of the head and the pass.
    pub(crate) fn landed_before(&self, pass: &Pass) -> Lbn {
        let latency = pass.begins - pass.on_track;
        let sector = self.mechanics.spindle().time_of_units(pass.width >> 32).0.max(1);
        let first = self.track_of(&pass.extent, pass.first).0;
        Lbn(pass.first.0.saturating_sub(latency.0 / sector)).max(first).min(pass.first)
    }

    /// First block of the track of `lbn` and the block after its last. `near` may be the run that contains it.
    #[inline]
    pub(crate) fn track_of(&self, near: &Extent, lbn: Lbn) -> (Lbn, Lbn) {
        if near.contains(lbn) && near.sectors == near.sectors_per_track {
            return (near.first, near.first + u64::from(near.sectors));
        }
        let track = self.geometry.track_at(lbn);
        (track.first, track.first + u64::from(track.sectors))
    }

    /// Reads `start..end` in order. `first` is a pass that is already planned (or running) and contains `start`.
    pub(crate) fn read_in_order(
        &self,
        from: Instant,
        first: Pass,
        end: Lbn,
        delivered: &mut Delivered,
    ) -> Span {
        let mut span = Span { last: first, ..Span::default() };
        let mut from = from;
        loop {
            let ends = span.last.end(self);
            span.count_last(from, ends);
            delivered.add(self, &span.last, ends);
            let next = span.last.end_lbn();
            if next >= end {
                return span;
            }
            from = ends;
            span.last = self.plan(&span.last.extent, span.arm(), next, end - next, false);
        }
    }

    /// Reads from the start of `pass`, planned for an arm coming from `arm`, up to `end`, by the drive's rule of
    /// zero-latency access.
    pub(crate) fn read(&self, arm: Arm, pass: Pass, end: Lbn, delivered: &mut Delivered) -> Span {
        let whole = pass.end_lbn() == end;
        match self.mechanics.zero_latency(false) {
            ZeroLatency::WithinTrack if whole => self.access_on_arrival(arm, pass, delivered, &mut |_| {}),
            ZeroLatency::PerFragment => self.read_fragments(arm, pass, end, delivered),
            _ => self.read_in_order(arm.at, pass, end, delivered),
        }
    }

    /// Splits a pass at the sector in which the head lands, if it lands inside: returns how many sectors arrive only after the
    /// wrap.
    fn landed_inside(&self, pass: &Pass) -> Option<u32> {
        let spindle = self.mechanics.spindle();
        let turn = spindle.period();
        let missed = turn.saturating_sub(pass.begins - pass.on_track);
        let length = pass.end(self) - pass.begins;
        if missed >= length || missed == Nanos::ZERO {
            return None;
        }
        // The head lands `missed` after the start of the run: the sector that is under it has begun already.
        let shifted = Pass { begins: Instant::ZERO, ..*pass };
        let wrapped = shifted.gone_by(self, Instant::ZERO + missed) + 1;
        (wrapped < pass.sectors).then_some(wrapped)
    }

    /// Accesses a run of sectors from wherever the head lands; calls `sees` with the passes in that order.
    fn access_on_arrival(
        &self,
        arm: Arm,
        pass: Pass,
        delivered: &mut Delivered,
        sees: &mut impl FnMut(Pass),
    ) -> Span {
        let mut span = Span::default();
        let Some(wrapped) = self.landed_inside(&pass) else {
            sees(pass);
            let end = pass.end(self);
            span.add(arm.at, &pass, end);
            delivered.add(self, &pass, end);
            return span;
        };
        let front = Pass { sectors: wrapped, ..pass };
        let end = front.end(self);
        // The rear part was read on landing; the gap between the two is latency.
        let turn = self.mechanics.spindle().period();
        let rear = pass.part(self, front.end_lbn(), pass.end_lbn());
        sees(Pass { begins: rear.begins.saturating_sub(turn).max(pass.on_track), ..rear });
        sees(front);
        let rear_time = (pass.end(self) - end).0.min((pass.begins - pass.on_track).0);
        span.add(arm.at, &front, end);
        span.rotation = Nanos(span.rotation.0 - rear_time);
        span.media += Nanos(rear_time);
        let rear_left = delivered.bus_time(delivered.end.0.saturating_sub(pass.first.0 + u64::from(wrapped)));
        if delivered.order == Delivery::OutOfOrder {
            let rear_begins = pass.end_of(self, wrapped).saturating_sub(turn).max(pass.on_track);
            if delivered.ready == Instant::ZERO {
                delivered.ready = rear_begins + self.mechanics.spindle().time_of_units(pass.width >> 32);
            }
            delivered.bound = delivered.bound.max(end + delivered.bus_time(1));
        } else {
            delivered.add(self, &front, end);
            if delivered.order == Delivery::InOrderWhole || delivered.watermark >= front.end_lbn() {
                delivered.ready = end;
            }
            delivered.bound = delivered.bound.max(end + rear_left);
        }
        span
    }

    /// Each track's part of a request, read from wherever the head lands on that track.
    fn read_fragments(&self, arm: Arm, first: Pass, end: Lbn, delivered: &mut Delivered) -> Span {
        let mut total = Span::default();
        let (mut arm, mut pass) = (arm, first);
        loop {
            let span = self.access_on_arrival(arm, pass, delivered, &mut |_| {});
            total.append(&span);
            if pass.end_lbn() >= end {
                return total;
            }
            arm = span.arm();
            pass = self.plan(&pass.extent, arm, pass.end_lbn(), end - pass.end_lbn(), false);
        }
    }

    /// Writes a run whose data arrive from the host as `arriving` says; calls `sees` with the passes.
    fn write(
        &self,
        near: &Extent,
        arm: Arm,
        run: Range<Lbn>,
        arriving: Arriving,
        sees: &mut impl FnMut(Pass),
    ) -> Span {
        let (start, end) = (run.start, run.end);
        let mut pass = self.plan(near, arm, start, end - start, true);
        let mut span = Span::default();
        let (mut from, mut place) = (arm.at, arm.place);
        let all_here = arriving.time_of(end - start) <= pass.on_track;
        let rule = self.mechanics.zero_latency(true);
        let one_run = pass.end_lbn() == end;
        let on_arrival =
            all_here && (rule == ZeroLatency::PerFragment || rule == ZeroLatency::WithinTrack && one_run);
        loop {
            if on_arrival {
                let mut nowhere = Delivered::nowhere();
                let part = self.access_on_arrival(Arm { place, at: from }, pass, &mut nowhere, sees);
                span.append(&part);
            } else {
                pass = self.wait_for_data(pass, start, arriving);
                sees(pass);
                let ends = pass.end(self);
                span.add(from, &pass, ends);
            }
            if pass.end_lbn() >= end {
                return span;
            }
            (from, place) = (span.end, pass.place());
            pass = self.plan_on(&pass.extent, Arm { place, at: from }, pass.end_lbn(), end - pass.end_lbn());
        }
    }

    /// Writes a run through a buffer of `room.sectors`: the rest crosses the bus each time the buffer has drained to `room.left`.
    /// Calls `sees` with the passes in order.
    pub(crate) fn write_in_parts(
        &self,
        near: &Extent,
        arm: Arm,
        run: Range<Lbn>,
        arriving: Arriving,
        room: Room,
        sees: &mut impl FnMut(Pass),
    ) -> Span {
        let (mut arm, mut arriving) = (arm, arriving);
        let mut total = Span::default();
        let mut from = run.start;
        while from < run.end {
            let to = Lbn(run.end.0.min(from.0.saturating_add(room.sectors)));
            let span = self.write(near, arm, from..to, arriving, sees);
            total.append(&span);
            let left = (u128::from(room.left) * u128::from(span.last.width)) >> 32;
            let run_down = span.end.saturating_sub(self.mechanics.spindle().time_of_units(left as u64));
            arriving.begins = run_down.max(arriving.time_of(to - from)) + room.reconnect;
            arriving.least = 1;
            arm = span.arm();
            from = to;
        }
        total
    }

    /// Delays a pass by whole revolutions until the data of its first sector are in the buffer when it begins, and cuts it before a sector
    /// whose data are not.
    fn wait_for_data(&self, mut pass: Pass, start: Lbn, arriving: Arriving) -> Pass {
        let turn = self.round(&pass);
        let before = pass.first - start;
        if self.mechanics.constant_access().is_some() {
            pass.begins = pass.begins.max(arriving.time_of(before + u64::from(pass.sectors)));
            return pass;
        }
        while arriving.time_of((before + 1).max(arriving.least)) > pass.begins {
            pass.begins += turn;
        }
        let late = |count: u32| arriving.time_of(before + u64::from(count) + 1) > pass.end_of(self, count);
        if late(pass.sectors - 1) {
            // Arrival and passing are both linear in the sector, so the first late one is found by halving.
            let (mut here, mut missing) = (0, pass.sectors - 1);
            while missing - here > 1 {
                let middle = here + (missing - here) / 2;
                if late(middle) { missing = middle } else { here = middle }
            }
            pass.sectors = missing.max(1);
        }
        pass
    }
}

/// The buffer of a write that is longer than it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) sectors: u64,
    /// Sectors left in it when the drive requests more.
    pub(crate) left: u64,
    /// From the request to the first data.
    pub(crate) reconnect: Nanos,
}

impl Room {
    /// A buffer that holds all of any write, as for data already in the cache.
    pub(crate) const ENDLESS: Room = Room { sectors: u64::MAX, left: 0, reconnect: Nanos::ZERO };
}

/// The arrival of a write's data in the buffer: one sector after another at the bus's rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arriving {
    pub(crate) begins: Instant,
    /// Time of a sector on the bus, in 2⁻¹⁰ ns.
    pub(crate) bus_sector: u64,
    /// Sectors that must be here before the media write begins.
    pub(crate) least: u64,
}

impl Arriving {
    /// When the first `sectors` are in the buffer.
    #[inline]
    pub(crate) fn time_of(&self, sectors: u64) -> Instant {
        self.begins + Nanos((sectors * self.bus_sector) >> 10)
    }
}
