//! The mechanics: the time of the arm from track to track, and the time at which a sector arrives.
//!
//! Modelled: seek and head switch in parallel, write settle, spindle with its deviation; or one time for every access.
//! Not modelled: several actuators, vibration, servo effects within a settle.

mod seek;
mod sheet;
mod table;

pub use seek::SeekCurve;
pub use sheet::SheetCurve;

use crate::spec::{MechanicsSpec, SeekPiece, SeekSpec, ZeroLatency};
use crate::{DriveSpec, Nanos, Spindle};

/// The track under the heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackPlace {
    /// Cylinder of the arm.
    pub cylinder: u32,
    /// Head in use.
    pub head: u32,
}

/// Arm, heads and spindle of a drive.
#[derive(Clone, Debug)]
pub struct Mechanics {
    spindle: Spindle,
    reads: SeekCurve,
    writes: Option<SeekCurve>,
    floor: SeekCurve,
    head_switch: Nanos,
    constant_access: Option<Nanos>,
    write_settle_ns: i64,
    zero_latency_read: ZeroLatency,
    zero_latency_write: ZeroLatency,
    waits_skip_spares: bool,
}

impl Mechanics {
    /// The mechanics that a drive file describes.
    pub fn new(drive: &DriveSpec) -> Mechanics {
        let spec: &MechanicsSpec = &drive.mechanics;
        let cylinders = drive.geometry.cylinders;
        let seek_spec = match spec.constant_access_ms {
            Some(time) => constant_seek(time),
            None => spec.seek.clone(),
        };
        let reads = seek::read_times(&seek_spec, cylinders);
        let writes = seek::write_times(&seek_spec, cylinders);
        let write_settle_ns = (spec.write_settle_ms * 1e6).round() as i64;
        // Sectors that arrive out of order need memory.
        let zero_latency = |rule| if drive.cache.buffered { rule } else { ZeroLatency::None };
        let reduction = Nanos(write_settle_ns.min(0).unsigned_abs());
        let floor = seek::floor_times(&reads, writes.as_deref(), reduction);
        Mechanics {
            spindle: Spindle::from_rpm(spec.rpm * (1.0 + spec.rpm_deviation_percent / 100.0)),
            reads: SeekCurve::new(reads),
            writes: writes.map(SeekCurve::new),
            floor: SeekCurve::new(floor),
            head_switch: Nanos::from_ms(spec.head_switch_ms),
            constant_access: spec.constant_access_ms.map(Nanos::from_ms),
            write_settle_ns,
            zero_latency_read: zero_latency(spec.zero_latency_read),
            zero_latency_write: zero_latency(spec.zero_latency_write),
            waits_skip_spares: spec.waits_skip_spares,
        }
    }

    /// The spindle.
    #[inline]
    pub fn spindle(&self) -> &Spindle {
        &self.spindle
    }

    /// The time of every access, where it is the same for all.
    #[inline]
    pub fn constant_access(&self) -> Option<Nanos> {
        self.constant_access
    }

    /// Zero-latency access on reads, or on writes.
    #[inline]
    pub fn zero_latency(&self, write: bool) -> ZeroLatency {
        if write { self.zero_latency_write } else { self.zero_latency_read }
    }

    /// Whether sectors without blocks pass in no time while a write waits for its data.
    #[inline]
    pub fn waits_skip_spares(&self) -> bool {
        self.waits_skip_spares
    }

    /// Time from one track to another, until the head may read (or write) there. Zero for the same track.
    ///
    /// Seek and head switch run in parallel, so the longer counts. A write settles after either.
    #[inline]
    pub fn reposition(&self, from: TrackPlace, to: TrackPlace, write: bool) -> Nanos {
        if from == to {
            return Nanos::ZERO;
        }
        let distance = from.cylinder.abs_diff(to.cylinder);
        let (curve, settled) = match (&self.writes, write) {
            (Some(writes), true) => (writes, true),
            _ => (&self.reads, false),
        };
        let mut time = curve.time(distance);
        if from.head != to.head && self.head_switch > time {
            time = self.head_switch;
        }
        if write && !(settled && distance > 0) {
            time = Nanos(time.0.saturating_add_signed(self.write_settle_ns));
        }
        time
    }

    /// A lower bound of [`Mechanics::reposition`] over at least `distance` cylinders, to any head, for reads and writes.
    #[inline]
    pub fn reposition_at_least(&self, distance: u32) -> Nanos {
        self.floor.time(distance)
    }
}

/// A seek with the same time over any distance.
fn constant_seek(time_ms: f64) -> SeekSpec {
    let piece = SeekPiece { up_to_cylinders: None, constant_ms: time_ms, sqrt_ms: 0.0, linear_ms: 0.0 };
    SeekSpec { pieces: vec![piece], ..SeekSpec::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: TrackPlace = TrackPlace { cylinder: 100, head: 0 };
    const HEAD: TrackPlace = TrackPlace { cylinder: 100, head: 1 };
    const FAR: TrackPlace = TrackPlace { cylinder: 300, head: 1 };

    fn with_settle(ms: f64) -> Mechanics {
        let mut spec = crate::drives::load("dec-rz26").expect("it is shipped");
        spec.mechanics.write_settle_ms = ms;
        Mechanics::new(&spec)
    }

    #[test]
    fn write_settle_is_added_to_seek_and_head_switch() {
        let quarter = Nanos::from_ms(0.25);
        let (without, with, negative) = (with_settle(0.0), with_settle(0.25), with_settle(-0.25));
        for to in [HEAD, FAR] {
            let read = without.reposition(AT, to, false);
            assert_eq!(with.reposition(AT, to, false), read);
            assert_eq!(with.reposition(AT, to, true), read + quarter);
            assert_eq!(negative.reposition(AT, to, false), read);
            assert_eq!(negative.reposition(AT, to, true), read - quarter);
        }
        assert_eq!(with.reposition(AT, AT, true), Nanos::ZERO);
    }

    #[test]
    fn reposition_lower_bound_covers_negative_write_settle() {
        let mechanics = with_settle(-0.25);
        for cylinder in [101, 150, 400, 2598] {
            let to = TrackPlace { cylinder, head: 0 };
            let bound = mechanics.reposition_at_least(cylinder - AT.cylinder);
            assert!(bound <= mechanics.reposition(AT, to, true), "to cylinder {cylinder}");
        }
    }
}
