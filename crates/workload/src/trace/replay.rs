//! A trace as a load: issues every request again, on the volumes of a rig.
//!
//! A trace with times is replayed *open*: each request at its recorded time, counted from the first one's, however long the
//! rig takes. If a record has a think time, the replay is *closed*: the next request waits for this one's completion
//! and then for the think time. The trace is read when needed, one record at a time.

use std::collections::BTreeMap;

use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use thiserror::Error;

use super::{Kind, Record, Trace, TraceError};
use crate::VolumeInfo;
use crate::load::{Issue, Load, Poll};
use crate::only_disk::OnlyDisk;

/// Options of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayOptions {
    /// Times are stretched by this: 1 as recorded, 0.5 twice as fast.
    pub time_scale: f64,
    /// The assignment of devices to volumes.
    pub devices: DeviceMap,
    /// The treatment of blocks beyond the end of a volume.
    pub out_of_range: OutOfRange,
}

impl Default for ReplayOptions {
    fn default() -> ReplayOptions {
        ReplayOptions {
            time_scale: 1.0,
            devices: DeviceMap::FirstAppearance,
            out_of_range: OutOfRange::Error,
        }
    }
}

/// The assignment of a trace's devices to a rig's volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceMap {
    /// The first device that appears goes to volume 0, the next new one to volume 1 and so on.
    FirstAppearance,
    /// All to one volume.
    AllTo(u32),
    /// Each by its name in the trace, to the given volume.
    Named(BTreeMap<String, u32>),
    /// All to the only volume, which stands for one disk: a second `/dev/…` is refused.
    OneDisk(OnlyDisk),
}

/// The treatment of blocks beyond the end of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfRange {
    /// The replay ends with an error.
    Error,
    /// They wrap around: the first block is taken modulo the volume's blocks.
    Wrap,
}

/// Why a replay ended before its trace.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ReplayError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(
        "{file}: request {request}: device {device} is number {count}, and the rig has {volumes} volumes"
    )]
    TooManyDevices {
        file: String,
        /// The request, counted from 1.
        request: u64,
        device: String,
        count: usize,
        volumes: usize,
    },
    #[error("{file}: request {request}: no volume is named for device {device}")]
    Unmapped {
        file: String,
        /// The request, counted from 1.
        request: u64,
        device: String,
    },
    #[error(
        "{file}: request {request}: `{device}` and `{first}` are two disks, and the rig has one volume, `{volume}`; name both in the rig (`[[drive]]` with \
         `volume`), or send all to one with `filename` in the job"
    )]
    TwoDisks {
        file: String,
        /// The request, counted from 1.
        request: u64,
        device: String,
        /// The disk that was named before.
        first: String,
        volume: String,
    },
    #[error(
        "{file}: request {request}: device {device} is to go to volume {volume}, and the rig has {volumes}"
    )]
    NoVolume {
        file: String,
        /// The request, counted from 1.
        request: u64,
        device: String,
        /// The volume, counted from 0.
        volume: u32,
        volumes: usize,
    },
    #[error("{file}: request {request}: block {block} is not on {volume}, which has {sectors}")]
    OutOfRange {
        file: String,
        /// The request, counted from 1.
        request: u64,
        /// The last block of the request.
        block: u64,
        volume: String,
        sectors: u64,
    },
}

/// The replay of a trace.
pub struct Replay<'a> {
    trace: Trace<'a>,
    volumes: Vec<VolumeInfo>,
    options: ReplayOptions,
    known: BTreeMap<u32, u32>,
    base: Option<Instant>,
    /// The next request, with its time on the rig's clock.
    next: Option<(Issue, Record)>,
    /// The request whose completion the replay waits for, and its think time.
    busy: Option<(u64, Nanos)>,
    /// When the next request is issued, after that completion.
    resume: Option<Instant>,
    read: u64,
    issued: u64,
    counts: ReplayCounts,
    error: Option<ReplayError>,
}

/// Numbers of requests that a replay left out or changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// Requests issued.
    pub issued: u64,
    /// Trims left out: a rotating disk has none.
    pub trims: u64,
    /// Reads and writes of no bytes left out.
    pub empty: u64,
    /// Requests that were wrapped into the volume.
    pub wrapped: u64,
    /// Malformed lines or records skipped.
    pub malformed: u64,
}

impl<'a> Replay<'a> {
    /// The replay of `trace` on `volumes`.
    pub fn new(trace: Trace<'a>, volumes: &[VolumeInfo], options: ReplayOptions) -> Replay<'a> {
        Replay {
            trace,
            volumes: volumes.to_vec(),
            options,
            known: BTreeMap::new(),
            base: None,
            next: None,
            busy: None,
            resume: None,
            read: 0,
            issued: 0,
            counts: ReplayCounts::default(),
            error: None,
        }
    }

    /// Exchanges the disk that a rig's only volume stands for, which several replays of a load share, if this one maps to it.
    pub(crate) fn exchange_disk(&mut self, shared: &mut OnlyDisk) {
        if let DeviceMap::OneDisk(own) = &mut self.options.devices {
            std::mem::swap(own, shared);
        }
    }

    /// As [`Replay::error`], and clears it.
    pub fn take_error(&mut self) -> Option<ReplayError> {
        self.error.take()
    }

    /// The error that ended the replay before the trace's end, if any.
    pub fn error(&self) -> Option<&ReplayError> {
        self.error.as_ref()
    }

    /// Numbers of requests issued, left out and changed so far.
    pub fn counts(&self) -> ReplayCounts {
        ReplayCounts { issued: self.issued, malformed: self.trace.skipped().0, ..self.counts }
    }

    /// The trace, as far as it was read.
    pub fn trace(&self) -> &Trace<'a> {
        &self.trace
    }

    /// The next request that can be issued; `None` at the end or at an error, which is stored.
    fn read_next(&mut self) -> Option<(Issue, Record)> {
        while self.error.is_none() {
            let record = match self.trace.next_record() {
                Ok(record) => record?,
                Err(error) => {
                    self.error = Some(error.into());
                    break;
                }
            };
            self.read += 1;
            self.base.get_or_insert(record.time);
            match record.kind {
                Kind::Trim => self.counts.trims += 1,
                Kind::Read | Kind::Write if record.bytes == 0 => self.counts.empty += 1,
                _ => match self.locate(&record) {
                    Ok(issue) => return Some((issue, record)),
                    Err(error) => self.error = Some(error),
                },
            }
        }
        None
    }

    fn locate(&mut self, record: &Record) -> Result<Issue, ReplayError> {
        let device = self.volume(record.device)?;
        let volume = &self.volumes[device as usize];
        let request = match record.kind {
            Kind::Flush => Request::flush(),
            kind => {
                let op = if kind == Kind::Read { Op::Read } else { Op::Write };
                let (lbn, sectors, wrapped) = self.run(record, volume)?;
                self.counts.wrapped += u64::from(wrapped);
                Request { op, lbn, sectors, fua: false }
            }
        };
        Ok(Issue { source: record.source.unwrap_or(0), ..Issue::new(device, request, self.issued) })
    }

    /// The blocks of a record's bytes, and whether they were wrapped.
    fn run(&self, record: &Record, volume: &VolumeInfo) -> Result<(Lbn, u32, bool), ReplayError> {
        let sector = u64::from(volume.sector_bytes);
        let first = record.offset / sector;
        let end = record.end().div_ceil(sector);
        let sectors = end - first;
        let fits = u32::try_from(sectors).ok().filter(|_| sectors <= volume.sectors);
        match (fits, self.options.out_of_range) {
            (Some(count), _) if end <= volume.sectors => Ok((Lbn(first), count, false)),
            (Some(count), OutOfRange::Wrap) => {
                Ok((Lbn((first % volume.sectors).min(volume.sectors - sectors)), count, true))
            }
            _ => Err(ReplayError::OutOfRange {
                file: self.trace.file().to_string(),
                request: self.read,
                block: end - 1,
                volume: volume.name.clone(),
                sectors: volume.sectors,
            }),
        }
    }

    fn volume(&mut self, device: u32) -> Result<u32, ReplayError> {
        if let Some(volume) = self.known.get(&device) {
            return Ok(*volume);
        }
        let label = || self.trace.header().label(device);
        let file = || self.trace.file().to_string();
        let (request, volumes, count) = (self.read, self.volumes.len(), self.known.len() + 1);
        let volume = match &mut self.options.devices {
            DeviceMap::FirstAppearance if count > volumes => {
                return Err(ReplayError::TooManyDevices {
                    file: file(),
                    request,
                    device: label(),
                    count,
                    volumes,
                });
            }
            DeviceMap::FirstAppearance => count as u32 - 1,
            DeviceMap::AllTo(volume) => *volume,
            DeviceMap::OneDisk(disk) => {
                let device = label();
                if let Some(first) = disk_name(&device).and_then(|name| disk.admit(name).err()) {
                    let volume = self.volumes.first().map_or_else(String::new, |volume| volume.name.clone());
                    return Err(ReplayError::TwoDisks { file: file(), request, device, first, volume });
                }
                0
            }
            DeviceMap::Named(map) => match map.get(&label()) {
                Some(volume) => *volume,
                None => return Err(ReplayError::Unmapped { file: file(), request, device: label() }),
            },
        };
        if volume as usize >= volumes {
            return Err(ReplayError::NoVolume { file: file(), request, device: label(), volume, volumes });
        }
        self.known.insert(device, volume);
        Ok(volume)
    }

    /// A span of the trace on the rig's clock.
    fn scaled(&self, span: Nanos) -> Nanos {
        if self.options.time_scale == 1.0 {
            return span;
        }
        // Out of range means a negative or unbounded factor; `as` ends at the ends of the range.
        Nanos((span.0 as f64 * self.options.time_scale) as u64)
    }
}

/// The name, if it is that of a device file.
fn disk_name(device: &str) -> Option<&str> {
    device.starts_with("/dev/").then_some(device)
}

impl Load for Replay<'_> {
    fn poll(&mut self, now: Instant) -> Poll {
        if self.busy.is_some() {
            return Poll::Waiting;
        }
        if self.next.is_none() {
            self.next = self.read_next();
        }
        let Some((issue, record)) = self.next else { return Poll::Done };
        let recorded = || Instant::ZERO + self.scaled(record.time.since(self.base.unwrap_or(record.time)));
        let due = self.resume.unwrap_or_else(recorded);
        if now < due {
            return Poll::Later(due);
        }
        self.next = None;
        self.resume = None;
        self.busy = record.think.map(|think| (issue.id, self.scaled(think)));
        self.issued += 1;
        Poll::Issue(issue)
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        if let Some((_, think)) = self.busy.take_if(|(busy, _)| *busy == id) {
            self.resume = Some(now.saturating_add(think));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::*;

    const OPEN: &str = "1000.5 30 100 8 1\n1000.5 20 0 1 0\n1003.5 30 999 1 1\n";
    const CLOSED: &str = "W Hit 4583176 4 663 45422\nR Miss 7 2 1414.270 18.5\nR Trip 9 1 0 0\n";

    fn volumes(sectors: &[u64]) -> Vec<VolumeInfo> {
        let volume = |(index, sectors): (usize, &u64)| VolumeInfo {
            name: format!("disk{index}"),
            sectors: *sectors,
            sector_bytes: 512,
            zones: None,
        };
        sectors.iter().enumerate().map(volume).collect()
    }

    fn replay<'a>(format: &str, text: &'a str, sectors: &[u64], options: ReplayOptions) -> Replay<'a> {
        let trace = Trace::open(text.as_bytes(), "t.trace", named(format)).expect("the format is known");
        Replay::new(trace, &volumes(sectors), options)
    }

    /// Polls to the end, jumping to each returned time, and returns times, volumes and requests.
    fn run(replay: &mut Replay) -> Vec<(u64, u32, Request)> {
        let (mut now, mut issued) = (Instant::ZERO, Vec::new());
        loop {
            match replay.poll(now) {
                Poll::Issue(issue) => issued.push((now.0, issue.device, issue.request)),
                Poll::Later(time) => now = time,
                Poll::Waiting | Poll::Done | Poll::Compute { .. } => return issued,
            }
        }
    }

    #[test]
    fn open_trace_does_not_wait_for_completions() {
        let mut open = replay("disksim", OPEN, &[1000, 1000], ReplayOptions::default());
        let expected = [
            (0, 0, Request::read(Lbn(100), 8)),
            (0, 1, Request::write(Lbn(0), 1)),
            (3_000_000, 0, Request::read(Lbn(999), 1)),
        ];
        assert_eq!(run(&mut open), expected);
        assert!(open.error().is_none());
        assert_eq!(open.counts(), ReplayCounts { issued: 3, ..ReplayCounts::default() });
        let options = ReplayOptions { time_scale: 0.5, ..ReplayOptions::default() };
        let mut faster = replay("disksim", OPEN, &[1000, 1000], options);
        assert_eq!(run(&mut faster)[2].0, 1_500_000);
    }

    #[test]
    fn closed_trace_waits_for_completion_and_think_time() {
        let mut closed = replay("validate", CLOSED, &[1 << 30], ReplayOptions::default());
        let issue = |request, id| Poll::Issue(Issue::new(0, request, id));
        assert_eq!(closed.poll(Instant(0)), issue(Request::write(Lbn(4_583_176), 4), 0));
        assert_eq!(closed.poll(Instant(0)), Poll::Waiting);
        closed.handle_completion(Instant(1_000), 0);
        assert_eq!(closed.poll(Instant(1_000)), Poll::Later(Instant(45_423_000)));
        assert_eq!(closed.poll(Instant(45_423_000)), issue(Request::read(Lbn(7), 2), 1));
        closed.handle_completion(Instant(50_000_000), 1);
        assert_eq!(closed.poll(Instant(50_018_500)), issue(Request::read(Lbn(9), 1), 2));
        assert_eq!(closed.poll(Instant(50_018_500)), Poll::Waiting);
        closed.handle_completion(Instant(50_020_000), 2);
        assert_eq!(closed.poll(Instant(50_020_000)), Poll::Done);
    }

    #[test]
    fn replay_error_is_kept_and_reported() {
        let said = |text: &str, sectors: &[u64], options: ReplayOptions| {
            let mut replay = replay("disksim", text, sectors, options);
            run(&mut replay);
            assert_eq!(replay.poll(Instant::MAX), Poll::Done);
            replay.error().expect("it ended early").to_string()
        };
        let default = ReplayOptions::default;
        assert_eq!(
            said(OPEN, &[1000], default()),
            "t.trace: request 2: device 20 is number 2, and the rig has 1 volumes"
        );
        assert_eq!(
            said(OPEN, &[999, 999], default()),
            "t.trace: request 3: block 999 is not on disk0, which has 999"
        );
        assert_eq!(
            said("0 1 2 3 1\n0 1 x 3 1\n", &[99], default()),
            "t.trace: line 2: lbn is `x`, where a whole number below 2^54 is allowed"
        );
        let named = |device: &str, volume| DeviceMap::Named(BTreeMap::from([(device.to_string(), volume)]));
        let options = |devices| ReplayOptions { devices, ..default() };
        assert_eq!(
            said(OPEN, &[1000], options(named("30", 0))),
            "t.trace: request 2: no volume is named for device 20"
        );
        assert_eq!(
            said(OPEN, &[1000], options(named("30", 7))),
            "t.trace: request 1: device 30 is to go to volume 7, and the rig has 1"
        );
        let long = "0 0 0 4294967295 1\n";
        let wrap = ReplayOptions { out_of_range: OutOfRange::Wrap, ..default() };
        assert_eq!(
            said(long, &[50], wrap),
            "t.trace: request 1: block 4294967294 is not on disk0, which has 50"
        );
    }

    #[test]
    fn blocks_beyond_volume_wrap_when_allowed() {
        let options = ReplayOptions {
            out_of_range: OutOfRange::Wrap,
            devices: DeviceMap::AllTo(0),
            ..ReplayOptions::default()
        };
        let mut wrapped = replay("disksim", "0 3 105 4 1\n0 4 99 4 1\n0 5 96 4 1\n", &[100], options);
        let starts: Vec<u64> = run(&mut wrapped).iter().map(|(_, _, request)| request.lbn.0).collect();
        assert_eq!(starts, [5, 96, 96]);
        assert_eq!(wrapped.counts().wrapped, 2);
    }

    #[test]
    fn bytes_map_to_larger_sectors_that_hold_them() {
        let trace = Trace::open(&b"0,R,4095,2,0\n"[..], "t", named("alibaba")).expect("the format is known");
        let volume = VolumeInfo { name: "d".to_string(), sectors: 10, sector_bytes: 4096, zones: None };
        let mut replay = Replay::new(trace, &[volume], ReplayOptions::default());
        assert_eq!(run(&mut replay)[0].2, Request::read(Lbn(0), 2));
    }
}
