//! Records written with O_SYNC: a write and then a FLUSH, as Linux sends to a disk on SATA, where it does not use FUA.
//!
//! Modelled: a host that cuts a record into requests of at most 1,280 KiB, sends them together and flushes when all have ended. Not
//! modelled: the page cache above, which costs no time of the disk.
//! *Source:* Linux, `max_sectors_kb` since 4.5, `libata.fua=0`.

use crate::study::StudyError;
use headstack_model::{DriveSpec, Instant, Lbn, Nanos, Request};
use headstack_sim::{Device, DeviceOptions};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Most blocks of 512 B in a request.
const REQUEST_SECTORS: u64 = 2560;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A disk with one writer.
struct Writer {
    device: Device,
    now: Instant,
}

impl Writer {
    fn new(spec: &DriveSpec) -> Result<Writer, StudyError> {
        Ok(Writer { device: Device::new(spec, &DeviceOptions::default())?, now: Instant::ZERO })
    }

    /// Writes a record and flushes; returns the time that both took.
    fn write(&mut self, first: u64, sectors: u64) -> Nanos {
        let began = self.now;
        let mut at = first;
        while at < first + sectors {
            let size = REQUEST_SECTORS.min(first + sectors - at);
            let write = Request::write(Lbn(at), size as u32);
            self.device.submit(self.now, write).expect("a record has fewer requests than the drive takes");
            at += size;
        }
        self.wait();
        self.device.submit(self.now, Request::flush()).expect("nothing is outstanding");
        self.wait();
        self.now.since(began)
    }

    fn wait(&mut self) {
        while self.device.outstanding() > 0 || self.device.has_completions() {
            match self.device.poll_completion() {
                Some(done) => self.now = self.now.max(done.completed),
                None => {
                    let next = self.device.poll_timeout().expect("commands are outstanding");
                    self.device.handle_timeout(next);
                }
            }
        }
    }

    /// Nothing is asked of the disk until then.
    fn idle_until(&mut self, time: Instant) {
        while let Some(next) = self.device.poll_timeout().filter(|next| *next < time) {
            self.device.handle_timeout(next);
        }
        self.now = self.now.max(time);
    }
}

/// Random places for records of one size, which are multiples of that size.
struct Places {
    random: Pcg64Mcg,
    sectors: u64,
    count: u64,
}

impl Places {
    fn new(spec: &DriveSpec, bytes: u64) -> Places {
        let sectors = bytes / u64::from(spec.sector_bytes);
        Places { random: Pcg64Mcg::seed_from_u64(1), sectors, count: spec.capacity_sectors / sectors }
    }

    fn next(&mut self) -> u64 {
        self.random.random_range(0..self.count) * self.sectors
    }
}

/// Bytes over which the first rate is taken, most that is written, and bytes over which the later rate is taken.
const FIRST: u64 = 4 * GIB;
const MOST: u64 = 48 * GIB;
const LATER: u64 = 6 * GIB;

/// Records of this size at random places: the first rate (MiB/s), the GiB after which it is less than half of that over a GiB, and the
/// rate after that (MiB/s).
///
/// A drive that never slows down has its knee at the end.
pub(super) fn random_records(spec: &DriveSpec, mib: u64) -> Result<[f64; 3], StudyError> {
    let (mut writer, mut places) = (Writer::new(spec)?, Places::new(spec, mib * MIB));
    let mut write_gib = |bytes: u64| {
        let began = writer.now;
        for _ in 0..bytes / (mib * MIB) {
            writer.write(places.next(), places.sectors);
        }
        (bytes / MIB) as f64 / writer.now.since(began).as_secs()
    };
    let first = write_gib(FIRST);
    let mut written = FIRST;
    let mut rate = first;
    while written < MOST && rate >= first / 2.0 {
        rate = write_gib(GIB);
        written += GIB;
    }
    if rate >= first / 2.0 {
        return Ok([first, MOST as f64 / GIB as f64, rate]);
    }
    // The knee lies within the last GiB: as far as the first rate explains its time.
    let knee = (written - GIB) as f64 / GIB as f64 + ((rate / first) - 0.5).max(0.0);
    Ok([first, knee, write_gib(LATER)])
}

/// Response from which on a record was held up.
const STALL: Nanos = Nanos(400_000_000);

/// Records of 1 MiB at random places, one a second: what those of 2,400 took that were held up (s).
pub(super) fn paced_records(spec: &DriveSpec) -> Result<Vec<f64>, StudyError> {
    let (mut writer, mut places) = (Writer::new(spec)?, Places::new(spec, MIB));
    let mut stalls = Vec::new();
    for second in 0..2400 {
        writer.idle_until(Instant::from_secs(second));
        let took = writer.write(places.next(), places.sectors);
        if took >= STALL {
            stalls.push(took.as_secs());
        }
    }
    Ok(stalls)
}

/// Records of `kib` in order from the zone on at 0.7 of the disk: MB/s.
pub(super) fn records_in_order(spec: &DriveSpec, kib: u64, count: u64) -> Result<f64, StudyError> {
    /// Blocks in a zone of 256 MiB.
    const ZONE: u64 = 1 << 19;
    let mut writer = Writer::new(spec)?;
    let sectors = (kib << 10) / u64::from(spec.sector_bytes);
    let first = spec.capacity_sectors / 10 * 7 / ZONE * ZONE;
    for index in 0..count {
        writer.write(first + index * sectors, sectors);
    }
    Ok((count * (kib << 10)) as f64 / writer.now.as_secs() / 1e6)
}
