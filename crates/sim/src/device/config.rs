//! The drive file's electronics as the device uses them: times in [`Nanos`], shares as functions.

use super::media::Room;
use headstack_model::spec::{BusSpec, Delivery, OverheadSet, OverheadSpec, WatermarkOf, WriteDisconnect};
use headstack_model::{DriveSpec, Nanos};

/// Overheads by kind of command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overheads {
    pub(super) read_hit: Nanos,
    pub(super) read_miss: Nanos,
    pub(super) write: Nanos,
}

impl Overheads {
    fn new(set: &OverheadSet) -> Overheads {
        Overheads {
            read_hit: Nanos::from_ms(set.read_hit_ms),
            read_miss: Nanos::from_ms(set.read_miss_ms),
            write: Nanos::from_ms(set.write_ms),
        }
    }
}

/// The disconnection before a write's data.
#[derive(Clone, Copy, Debug)]
pub(super) struct BeforeData {
    pub(super) command: Nanos,
    pub(super) disconnect: Nanos,
    pub(super) away: Nanos,
    pub(super) second_disconnect: Nanos,
    pub(super) seek_delay: Nanos,
}

impl BeforeData {
    fn new(spec: &WriteDisconnect) -> BeforeData {
        BeforeData {
            command: Nanos::from_ms(spec.command_ms),
            disconnect: Nanos::from_ms(spec.disconnect_ms),
            away: Nanos::from_ms(spec.away_ms),
            second_disconnect: Nanos::from_ms(spec.second_disconnect_ms),
            seek_delay: Nanos::from_ms(spec.seek_delay_ms),
        }
    }
}

/// The electronics' parameters of a device.
#[derive(Clone, Debug)]
pub(super) struct Config {
    after_read: Overheads,
    after_write: Overheads,
    pub(super) first: Nanos,
    /// Time to choose among the commands that wait.
    pub(super) choice: Nanos,
    pub(super) sequential: Option<Nanos>,
    pub(super) read_completion: Nanos,
    pub(super) write_completion: Nanos,
    pub(super) data_preparation: Nanos,
    disconnect_read_after_read: Nanos,
    disconnect_read_after_write: Nanos,
    pub(super) disconnect_write: Nanos,
    pub(super) reconnect_first: Nanos,
    pub(super) reconnect_other: Nanos,
    pub(super) write_seek_min: Nanos,
    pub(super) before_data: Option<BeforeData>,
    pub(super) never_disconnects: bool,
    pub(super) holds_for_reads: bool,
    pub(super) write_start_sectors: u64,
    /// Time of a sector on the bus, in 2⁻¹⁰ ns.
    pub(super) read_sector: u64,
    pub(super) write_sector: u64,
    full_ratio: f64,
    empty_ratio: f64,
    ratio_of: WatermarkOf,
    segment_sectors: u64,
    pub(super) delivery: Delivery,
    pub(super) physical_sectors: u64,
    pub(super) flush: Nanos,
    pub(super) destage_extra: Nanos,
    /// Whether a read that the buffer can answer needs the arm.
    pub(super) hits_take_arm: bool,
    /// Whether the data of writes are accepted whatever the arm does.
    pub(super) write_prebuffering: bool,
}

impl Config {
    pub(super) fn new(spec: &DriveSpec) -> Config {
        let overhead: &OverheadSpec = &spec.overhead;
        let bus: &BusSpec = &spec.bus;
        let per_sector = |us: f64| (us * 1e3 * 1024.0).round() as u64;
        Config {
            after_read: Overheads::new(&overhead.after_read),
            after_write: Overheads::new(&overhead.after_write),
            first: Nanos::from_ms(overhead.first_ms),
            choice: Nanos::from_ms(spec.queue.choice_ms),
            sequential: overhead.sequential_ms.map(Nanos::from_ms),
            read_completion: Nanos::from_ms(overhead.read_completion_ms),
            write_completion: Nanos::from_ms(overhead.write_completion_ms),
            data_preparation: Nanos::from_ms(overhead.data_preparation_ms),
            disconnect_read_after_read: Nanos::from_ms(bus.disconnect_read_after_read_ms),
            disconnect_read_after_write: Nanos::from_ms(bus.disconnect_read_after_write_ms),
            disconnect_write: Nanos::from_ms(bus.disconnect_write_ms),
            reconnect_first: Nanos::from_ms(bus.reconnect_first_ms),
            reconnect_other: Nanos::from_ms(bus.reconnect_other_ms),
            write_seek_min: Nanos::from_ms(bus.write_seek_min_ms),
            before_data: bus.write_disconnect.as_ref().map(BeforeData::new),
            never_disconnects: bus.never_disconnects,
            holds_for_reads: bus.holds_for_reads,
            write_start_sectors: u64::from(bus.write_start_sectors),
            read_sector: per_sector(bus.read_us_per_sector),
            write_sector: per_sector(bus.write_us_per_sector),
            full_ratio: bus.buffer_full_ratio,
            empty_ratio: bus.buffer_empty_ratio,
            ratio_of: bus.ratio_of,
            segment_sectors: u64::from(spec.cache.segment_sectors),
            delivery: bus.delivery,
            physical_sectors: u64::from(spec.physical_sector_bytes / spec.sector_bytes),
            flush: Nanos::from_ms(spec.cache.flush_ms),
            destage_extra: Nanos::from_ms(spec.cache.destage_extra_ms),
            hits_take_arm: spec.cache.hits_take_arm && !bus.never_disconnects,
            // A drive that never releases the bus accepts the data on it.
            write_prebuffering: spec.cache.write_prebuffering || bus.never_disconnects,
        }
    }

    /// Overheads of a command, by the kind of the previous one.
    pub(super) fn overheads(&self, after_write: bool) -> &Overheads {
        if after_write { &self.after_write } else { &self.after_read }
    }

    /// Time to release the bus in a read.
    pub(super) fn disconnect_read(&self, after_write: bool) -> Nanos {
        if after_write { self.disconnect_read_after_write } else { self.disconnect_read_after_read }
    }

    /// The buffer of a write-through. A drive without a ratio itself ensures that its data do not run out.
    pub(super) fn room(&self) -> Room {
        if self.empty_ratio == 0.0 {
            return Room::ENDLESS;
        }
        Room {
            sectors: self.segment_sectors,
            left: (self.segment_sectors as f64 * self.empty_ratio) as u64,
            reconnect: self.reconnect_first + self.data_preparation,
        }
    }

    /// Sectors that must be in the buffer before a read of `sectors` reconnects.
    #[inline]
    pub(super) fn watermark(&self, sectors: u64) -> u64 {
        if self.full_ratio == 0.0 {
            return 1;
        }
        let whole = match self.ratio_of {
            WatermarkOf::Request => sectors.min(self.segment_sectors),
            WatermarkOf::Segment => self.segment_sectors,
        };
        ((whole as f64 * self.full_ratio) as u64).clamp(1, sectors)
    }
}
