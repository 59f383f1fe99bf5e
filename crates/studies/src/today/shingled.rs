//! Drive-managed shingled disks: scattered writes before, while and after the persistent cache is full, and sequential writes.
//!
//! Modelled: 4 KiB writes over the whole disk, one after the other, until the map of extents is full, and 600 more; then ten minutes
//! without a command, and more such writes. Also sequential writes of 1 MiB at both ends of the disk.
//! *Source:* Aghayev and Desnoyers, Skylight, FAST 2015, and the sheets that the rows of `studies/today/expect.tsv` name.

use crate::judge::Measured;
use crate::study::{Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack_model::{Instant, Lbn, Nanos, Request, drives};
use headstack_sim::{Device, DeviceOptions, ShingleActivity};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const ARCHIVE: &str = "seagate-archive-8tb";
const RED: &str = "wd40efax";

/// Writes of 4 KiB while the cache is full, and after the pause.
const FULL_COUNT: u64 = 600;

const PAUSE: Nanos = Nanos::from_secs(600);

/// Length of an interval of the chart.
const INTERVAL: Nanos = Nanos::from_secs(10);

/// Blocks of a small and of a large write.
const SMALL: u64 = 8;
const LARGE: u64 = 2048;

/// The number of writes that ended in each interval, and the longest response of each in seconds.
type Intervals = Vec<(u64, f64)>;

/// A drive with one command at a time.
struct OneByOne {
    device: Device,
    now: Instant,
    random: Pcg64Mcg,
    intervals: Intervals,
    /// The writes and the time of the part that is measured.
    count: u64,
    from: Instant,
    longest: Nanos,
}

/// What one part of the run showed.
#[derive(Clone, Copy)]
struct Pace {
    rate: f64,
    longest_s: f64,
    seconds: f64,
    shingled: ShingleActivity,
}

impl OneByOne {
    fn new(drive: &str) -> Result<OneByOne, StudyError> {
        let device = Device::new(&drives::load(drive)?, &DeviceOptions::default())?;
        let (now, random) = (Instant::ZERO, Pcg64Mcg::seed_from_u64(1));
        let intervals = Vec::new();
        Ok(OneByOne { device, now, random, intervals, count: 0, from: now, longest: Nanos::ZERO })
    }

    /// Submits a command when the last one has ended, and waits for it.
    fn serve(&mut self, request: Request) {
        let submitted = self.now;
        self.device.submit(submitted, request).expect("no other command is outstanding");
        let completed = loop {
            if let Some(done) = self.device.poll_completion() {
                break done.completed;
            }
            let next = self.device.poll_timeout().expect("a command is outstanding");
            self.device.handle_timeout(next);
        };
        (self.now, self.count) = (completed, self.count + 1);
        let response = completed - submitted;
        self.longest = self.longest.max(response);
        let interval = ((completed - Instant::ZERO).0 / INTERVAL.0) as usize;
        if self.intervals.len() <= interval {
            self.intervals.resize(interval + 1, (0, 0.0));
        }
        let (count, longest) = &mut self.intervals[interval];
        (*count, *longest) = (*count + 1, longest.max(response.as_secs()));
    }

    fn write_anywhere(&mut self) {
        let lbn = self.random.random_range(0..self.device.sectors() / SMALL) * SMALL;
        self.serve(Request::write(Lbn(lbn), SMALL as u32));
    }

    /// The results since the last call.
    fn take_pace(&mut self) -> Pace {
        let seconds = (self.now - self.from).as_secs();
        let shingled = self.device.activity().shingled;
        let pace =
            Pace { rate: self.count as f64 / seconds, longest_s: self.longest.as_secs(), seconds, shingled };
        (self.count, self.from, self.longest) = (0, self.now, Nanos::ZERO);
        pace
    }

    fn is_full(&self) -> bool {
        self.device.activity().shingled.full_stalls > 0
    }
}

/// Writes before the cache is full, while it is full, and after a pause.
fn scattered() -> Result<(Vec<Pace>, Intervals), StudyError> {
    let mut disk = OneByOne::new(ARCHIVE)?;
    let mut paces = Vec::new();
    while !disk.is_full() {
        disk.write_anywhere();
    }
    paces.push(disk.take_pace());
    (0..FULL_COUNT).for_each(|_| disk.write_anywhere());
    paces.push(disk.take_pace());
    disk.now += PAUSE;
    disk.device.handle_timeout(disk.now);
    disk.take_pace();
    (0..FULL_COUNT).for_each(|_| disk.write_anywhere());
    paces.push(disk.take_pace());
    Ok((paces, disk.intervals))
}

/// MB/s of sequential 1 MiB writes from `first` on, including the time until the last of them is on the media.
fn stream_mb_s(drive: &str, is_inner: bool, count: u64) -> Result<f64, StudyError> {
    let mut disk = OneByOne::new(drive)?;
    let keys = drives::load(drive)?.shingled.expect("the drive is shingled");
    let band = u64::from(keys.band_sectors);
    let sectors = (count * LARGE).next_multiple_of(band);
    let bands = disk.device.sectors() / band;
    let first = if is_inner { bands * band - sectors } else { 0 };
    (0..sectors / LARGE)
        .for_each(|write| disk.serve(Request::write(Lbn(first + write * LARGE), LARGE as u32)));
    disk.serve(Request::flush());
    Ok(sectors as f64 * 512.0 / 1e6 / (disk.now - Instant::ZERO).as_secs())
}

/// The rows of both disks, and a section with the writes over time.
pub(super) fn measure(setting: &Setting<'_>) -> Result<(Vec<Measured>, Section), StudyError> {
    let count = setting.length.pick(6000, 1500);
    let places = [(ARCHIVE, false), (ARCHIVE, true), (RED, false), (RED, true)];
    let streams = setting.map(&places, |(drive, is_inner)| stream_mb_s(drive, *is_inner, count))?;
    let (paces, intervals) = scattered()?;
    let full = paces[1].shingled;
    let cleaned = full.bands_cleaned - paces[0].shingled.bands_cleaned;
    let busy = full.cleaning.total().as_secs() - paces[0].shingled.cleaning.total().as_secs();
    let measured = vec![
        Measured::new("seagate-archive-8tb.outer_write_mb_s", streams[0]),
        Measured::new("seagate-archive-8tb.mean_write_mb_s", (streams[0] + streams[1]) / 2.0),
        Measured::new("wd40efax.outer_write_mb_s", streams[2]),
        Measured::new("wd40efax.inner_write_mb_s", streams[3]),
        Measured::new("seagate-archive-8tb.writes_until_full", paces[0].rate * paces[0].seconds),
        Measured::new("seagate-archive-8tb.band_cleaning_s", busy / cleaned as f64),
    ];
    Ok((measured, section(&paces, &intervals)))
}

fn section(paces: &[Pace], intervals: &[(u64, f64)]) -> Section {
    let minutes = |interval: usize| (interval as f64 + 0.5) * INTERVAL.as_secs() / 60.0;
    // A logarithmic axis cannot show a rate of 0.
    let shown = intervals.iter().enumerate().filter(|(_, (count, _))| *count > 0);
    let rates = shown.clone().map(|(at, (count, _))| (minutes(at), *count as f64 / INTERVAL.as_secs()));
    let longest = shown.map(|(at, (_, longest))| (minutes(at), *longest));
    let chart = |title: &str, y: &str, points: Vec<(f64, f64)>| {
        Chart::new(title, Axis::linear("time (minutes)"), Axis::log(y), [Series::new(ARCHIVE, 0, points)])
    };
    let mut table = Table::new(
        "Random writes of 4 KiB, one after the other",
        ["", "writes a second", "longest (s)", "minutes", "bands cleaned so far"],
    );
    for (name, pace) in
        ["until the cache is full", "while it is full", "after ten idle minutes"].iter().zip(paces)
    {
        let figures = [pace.rate, pace.longest_s, pace.seconds / 60.0, pace.shingled.bands_cleaned as f64];
        table.named_row([name.to_string()], figures);
    }
    Section::new(format!("Random writes to a shingled disk: {ARCHIVE}"))
        .with_text(
            "Until the map of extents is full, writes go to the log of the persistent cache at once. Then a write waits until bands have \
             been cleaned, one after the other. In ten idle minutes the drive cleans some hundred bands, which leaves room for as many \
             writes as those bands had in the cache.",
        )
        .with_chart(chart("Random 4 KiB writes over time", "writes a second", rates.collect()))
        .with_chart(chart("Longest response in ten seconds", "seconds", longest.collect()))
        .with_table(table)
}
