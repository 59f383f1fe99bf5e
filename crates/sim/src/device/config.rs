//! The drive file's electronics as the device uses them: times in [`Nanos`], shares as functions.

use super::job::Job;
use super::media::{Delivered, Room};
use headstack_model::spec::{Delivery, OverheadSet, WatermarkOf, WriteDisconnect};
use headstack_model::{DriveSpec, Nanos};

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

#[derive(Clone, Debug)]
pub(super) struct BusRules {
    pub(super) read_completion: Nanos,
    pub(super) write_completion: Nanos,
    pub(super) data_preparation: Nanos,
    disconnect_read_after_read: Nanos,
    disconnect_read_after_write: Nanos,
    pub(super) disconnect_write: Nanos,
    pub(super) reconnect_first: Nanos,
    pub(super) reconnect_other: Nanos,
    /// The disconnection before a write's data.
    pub(super) before_data: Option<WriteDisconnect>,
    pub(super) never_disconnects: bool,
    pub(super) holds_for_reads: bool,
    /// Time of a sector on the bus, in 2⁻¹⁰ ns.
    pub(super) read_sector: u64,
    pub(super) write_sector: u64,
    pub(super) sector_bytes: u32,
}

impl BusRules {
    pub(super) fn new(spec: &DriveSpec) -> BusRules {
        let (overhead, bus) = (&spec.overhead, &spec.bus);
        let per_sector = |us: f64| (us * 1e3 * 1024.0).round() as u64;
        BusRules {
            read_completion: Nanos::from_ms(overhead.read_completion_ms),
            write_completion: Nanos::from_ms(overhead.write_completion_ms),
            data_preparation: Nanos::from_ms(overhead.data_preparation_ms),
            disconnect_read_after_read: Nanos::from_ms(bus.disconnect_read_after_read_ms),
            disconnect_read_after_write: Nanos::from_ms(bus.disconnect_read_after_write_ms),
            disconnect_write: Nanos::from_ms(bus.disconnect_write_ms),
            reconnect_first: Nanos::from_ms(bus.reconnect_first_ms),
            reconnect_other: Nanos::from_ms(bus.reconnect_other_ms),
            before_data: bus.write_disconnect,
            never_disconnects: bus.never_disconnects,
            holds_for_reads: bus.holds_for_reads,
            read_sector: per_sector(bus.read_us_per_sector),
            write_sector: per_sector(bus.write_us_per_sector),
            sector_bytes: spec.sector_bytes,
        }
    }

    /// Whether a read may keep the bus while it waits for the media.
    pub(super) fn holds(&self) -> bool {
        self.never_disconnects || self.holds_for_reads
    }

    pub(super) fn disconnect_read(&self, after_write: bool) -> Nanos {
        if after_write { self.disconnect_read_after_write } else { self.disconnect_read_after_read }
    }

    pub(super) fn read_time(&self, sectors: u64) -> Nanos {
        Nanos((sectors * self.read_sector) >> 10)
    }

    pub(super) fn write_time(&self, sectors: u64) -> Nanos {
        Nanos((sectors * self.write_sector) >> 10)
    }
}

#[derive(Clone, Debug)]
pub(super) struct BusBuffer {
    full_ratio: f64,
    ratio_of: WatermarkOf,
    segment_sectors: u64,
    delivery: Delivery,
    /// The buffer of a write-through. A drive without a ratio ensures by itself that its data do not run out.
    pub(super) room: Room,
    pub(super) write_start_sectors: u64,
}

impl BusBuffer {
    fn new(spec: &DriveSpec) -> BusBuffer {
        let (bus, sectors) = (&spec.bus, u64::from(spec.cache.segment_sectors));
        let reconnect =
            Nanos::from_ms(bus.reconnect_first_ms) + Nanos::from_ms(spec.overhead.data_preparation_ms);
        let left = (sectors as f64 * bus.buffer_empty_ratio) as u64;
        let endless = bus.buffer_empty_ratio == 0.0;
        BusBuffer {
            full_ratio: bus.buffer_full_ratio,
            ratio_of: bus.ratio_of,
            segment_sectors: sectors,
            delivery: bus.delivery,
            room: if endless { Room::ENDLESS } else { Room { sectors, left, reconnect } },
            write_start_sectors: u64::from(bus.write_start_sectors),
        }
    }

    /// Sectors that must be in the buffer before a read of `sectors` reconnects.
    #[inline]
    fn watermark(&self, sectors: u64) -> u64 {
        if self.full_ratio == 0.0 {
            return 1;
        }
        let whole = match self.ratio_of {
            WatermarkOf::Request => sectors.min(self.segment_sectors),
            WatermarkOf::Segment => self.segment_sectors,
        };
        ((whole as f64 * self.full_ratio) as u64).clamp(1, sectors)
    }

    /// How a read's transfer to the host depends on the media, where a sector crosses the bus in `bus_sector`.
    pub(super) fn delivery(&self, job: &Job, bus_sector: u64) -> Delivered {
        let request = job.command.request;
        let mark = request.lbn + (self.watermark(u64::from(request.sectors)) - 1);
        let (end, watermark, order) = (request.end(), mark.max(job.media_from), self.delivery);
        Delivered { end, watermark, bus_sector, order, ..Delivered::default() }
    }
}

/// The electronics' parameters of a device, beyond those of its bus.
#[derive(Clone, Debug)]
pub(super) struct Config {
    after_read: Overheads,
    after_write: Overheads,
    sequential: Option<Nanos>,
    /// The part of an overhead that no other command's work can overlap; none for all of it.
    pub(super) pipelined: Option<Nanos>,
    /// Overhead that is added to a command that finds the drive idle.
    pub(super) first: Nanos,
    /// Time to choose among the commands that wait.
    pub(super) choice: Nanos,
    pub(super) buffer: BusBuffer,
    pub(super) flush: Nanos,
    /// Whether a read that the buffer can answer needs the arm.
    pub(super) hits_take_arm: bool,
    /// Whether the drive has memory for data.
    pub(super) is_buffered: bool,
    /// Whether a write's data are accepted while the arm does other work.
    pub(super) write_prebuffering: bool,
}

impl Config {
    pub(super) fn new(spec: &DriveSpec) -> Config {
        let overhead = &spec.overhead;
        Config {
            after_read: Overheads::new(&overhead.after_read),
            after_write: Overheads::new(&overhead.after_write),
            sequential: overhead.sequential_ms.map(Nanos::from_ms),
            pipelined: overhead.pipelined_ms.map(Nanos::from_ms),
            first: Nanos::from_ms(overhead.first_ms),
            choice: Nanos::from_ms(spec.queue.choice_ms),
            buffer: BusBuffer::new(spec),
            flush: Nanos::from_ms(spec.cache.flush_ms),
            hits_take_arm: spec.cache.hits_take_arm && !spec.bus.never_disconnects,
            is_buffered: spec.cache.buffered,
            // A drive that never releases the bus accepts the data on it.
            write_prebuffering: spec.cache.write_prebuffering || spec.bus.never_disconnects,
        }
    }

    /// The time for which an overhead occupies the electronics.
    #[inline]
    pub(super) fn occupied(&self, overhead: Nanos) -> Nanos {
        self.pipelined.map_or(overhead, |least| least.min(overhead))
    }

    /// Overheads of a command, by the kind of the previous one, and by whether it continues one of its own kind.
    #[inline]
    pub(super) fn overheads(&self, after_write: bool, continues: bool) -> Overheads {
        match self.sequential {
            Some(time) if continues => Overheads { read_hit: time, read_miss: time, write: time },
            _ if after_write => self.after_write,
            _ => self.after_read,
        }
    }
}
