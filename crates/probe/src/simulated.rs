//! A simulated disk that answers probes in virtual time, as seen by a host with a noisy clock.

use crate::drive::ProbeTarget;
use crate::{Answer, DiskInfo, Outcome, Probe, ProbeCommand};
use headstack_model::spec::Sparing;
use headstack_model::{DriveSpec, Geometry, Instant, Nanos, Request};
use headstack_sim::{Device, DeviceError, DeviceOptions, Outcome as Ended};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, VecDeque};

/// Delays that a host's clock and its interrupts add to the end of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of a normal distribution.
    pub sigma: Nanos,
    /// Share of answers that are late in addition to that.
    pub late_share: f64,
    /// Maximum lateness, uniformly distributed.
    pub late_most: Nanos,
}

impl Noise {
    /// An exact clock.
    pub const NONE: Noise = Noise { sigma: Nanos::ZERO, late_share: 0.0, late_most: Nanos::ZERO };
    /// 8 µs, and one answer in 200 up to 3 ms late.
    pub const USUAL: Noise = Noise { sigma: Nanos(8_000), late_share: 0.005, late_most: Nanos(3_000_000) };
}

/// A simulated disk and its host.
#[derive(Debug)]
pub struct SimulatedDisk {
    device: Device,
    info: DiskInfo,
    /// Cylinder, head and sector of each defect.
    defects: Vec<(u32, u32, u32)>,
    noise: Noise,
    random: Pcg64Mcg,
    now: Instant,
    /// Commands at the device, by tag.
    in_flight: BTreeMap<u32, (Probe, Instant)>,
    later: VecDeque<Probe>,
    /// Answers by arrival.
    ended: BTreeMap<(Instant, u64), (Probe, Answer)>,
    probes: u64,
}

impl SimulatedDisk {
    /// The disk of a drive file.
    ///
    /// *Errors:* an invalid drive file.
    pub fn new(spec: &DriveSpec, noise: Noise, seed: u64) -> Result<SimulatedDisk, DeviceError> {
        let device = Device::new(spec, &DeviceOptions { seed, ..DeviceOptions::default() })?;
        let info = DiskInfo {
            sectors: device.sectors(),
            sector_bytes: device.sector_bytes(),
            physical_sectors: (spec.physical_sector_bytes / spec.sector_bytes).max(1),
            depth: device.depth(),
            may_write: true,
            translates: true,
        };
        let defects = defects(spec, &device.drive().geometry);
        Ok(SimulatedDisk {
            device,
            info,
            defects,
            noise,
            random: Pcg64Mcg::seed_from_u64(seed ^ 0x9E37_79B9_7F4A_7C15),
            now: Instant::ZERO,
            in_flight: BTreeMap::new(),
            later: VecDeque::new(),
            ended: BTreeMap::new(),
            probes: 0,
        })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The time by the disk's clock.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Number of probes so far.
    pub fn probes(&self) -> u64 {
        self.probes
    }

    fn submit(&mut self, probe: Probe) {
        let request = match probe.command {
            ProbeCommand::Read { lbn, sectors, from_media } => {
                Request { fua: from_media, ..Request::read(lbn, sectors) }
            }
            ProbeCommand::Write { lbn, sectors, to_media } => {
                Request { fua: to_media, ..Request::write(lbn, sectors) }
            }
            ProbeCommand::Flush => Request::flush(),
            ProbeCommand::Locate(_) | ProbeCommand::BlockAt(..) | ProbeCommand::Defects => {
                return self.translate(probe);
            }
        };
        let tag = self.device.submit(self.now, request).expect("no more are in flight than it takes");
        self.in_flight.insert(tag.0, (probe, self.now));
    }

    /// Answers from the layout; a translation takes a millisecond.
    fn translate(&mut self, probe: Probe) {
        let geometry = &self.device.drive().geometry;
        let outcome = match probe.command {
            ProbeCommand::Locate(lbn) if lbn.0 < geometry.sectors() => geometry.locate(lbn).into(),
            ProbeCommand::BlockAt(cylinder, head, sector) => {
                Outcome::Block(geometry.lbn_at(cylinder, head, sector))
            }
            ProbeCommand::Defects => Outcome::Defects(self.defects.clone()),
            _ => Outcome::Refused,
        };
        let ended = self.now + Nanos::from_ms(1.0);
        self.ended.insert((ended, probe.number), (probe, Answer { issued: self.now, ended, outcome }));
    }

    /// Collects completions of the device up to now.
    fn collect(&mut self) {
        while let Some(completion) = self.device.poll_completion() {
            let (probe, issued) = self.in_flight.remove(&completion.tag.0).expect("it was asked");
            let outcome = match completion.outcome {
                Ended::Done => Outcome::Done,
                _ => Outcome::Failed,
            };
            let ended = self.seen(completion.completed).max(issued);
            self.ended.insert((ended, probe.number), (probe, Answer { issued, ended, outcome }));
        }
    }

    /// When the host sees a completion.
    fn seen(&mut self, at: Instant) -> Instant {
        let noise = self.noise;
        // One of the two numbers of Box and Muller.
        let (first, second): (f64, f64) = (self.random.random(), self.random.random());
        let normal = libm::sqrt(-2.0 * libm::log(1.0 - first)) * libm::cos(std::f64::consts::TAU * second);
        let late = if self.random.random_bool(noise.late_share) {
            noise.late_most.0 as f64 * self.random.random::<f64>()
        } else {
            0.0
        };
        Instant((at.0 as f64 + normal * noise.sigma.0 as f64 + late).max(0.0) as u64)
    }
}

impl ProbeTarget for SimulatedDisk {
    type Error = std::convert::Infallible;

    fn info(&self) -> DiskInfo {
        self.info
    }

    fn submit(&mut self, probe: Probe) -> Result<(), Self::Error> {
        self.probes += 1;
        // A later probe delays those behind it, as in a single thread.
        if probe.at > self.now || !self.later.is_empty() {
            self.later.push_back(probe)
        } else {
            self.submit(probe)
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(Probe, Answer), Self::Error> {
        loop {
            let answer = self.ended.first_key_value().map(|((at, _), _)| *at);
            let requested = self.later.front().map(|probe| probe.at.max(self.now));
            let device = self.device.poll_timeout();
            let next = [answer, requested, device].into_iter().flatten().min();
            let next = next.expect("a probe is in flight");
            // The host may see an end before the device has it, if its clock errs to that side.
            self.now = self.now.max(next);
            if answer == Some(next) {
                let (_, found) = self.ended.pop_first().expect("there is one");
                return Ok(found);
            }
            self.device.handle_timeout(self.now);
            self.collect();
            if requested == Some(next)
                && let Some(probe) = self.later.pop_front()
            {
                self.submit(probe);
            }
        }
    }
}

/// Cylinder, head and sector of all slipped or remapped sectors of a drive file; of an extracted layout, all slips.
fn defects(spec: &DriveSpec, geometry: &Geometry) -> Vec<(u32, u32, u32)> {
    let whole_tracks = spec.geometry.sparing == Sparing::TracksPerZone;
    let mut indices: Vec<(usize, u64)> = Vec::new();
    for (number, zone) in spec.geometry.zones.iter().enumerate() {
        let unit = if whole_tracks { u64::from(zone.sectors_per_track) } else { 1 };
        let remapped = zone.remaps.iter().filter(|(from, to)| from != to).map(|(from, _)| from);
        let sectors = zone.slips.iter().chain(remapped).flat_map(|index| index * unit..(index + 1) * unit);
        indices.extend(sectors.map(|index| (number, index)));
    }
    for (number, zone) in spec.geometry.band_zones.iter().enumerate() {
        indices.extend(zone.slips.iter().map(|index| (number, *index)));
    }
    for (first, sectors) in spec.geometry.extents.iter().flat_map(|extents| &extents.slips) {
        indices.extend((*first..first + sectors).map(|index| (0, index)));
    }
    indices.into_iter().map(|(zone, index)| geometry.sector_at(zone, index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, Extraction, drive};
    use headstack_model::{Lbn, drives};

    /// Times between the ends of consecutive reads of one block.
    fn turns(noise: Noise, depth: u64) -> Vec<Nanos> {
        let spec = drives::load("toshiba-x300").expect("it is shipped");
        let mut disk = SimulatedDisk::new(&spec, noise, 1).expect("it holds");
        let mut extraction = Extraction::new(disk.info(), async move |disk: Disk| {
            let mut ends = Vec::new();
            for _ in 0..50 {
                // Several at a time, far from each other, to check that none is lost.
                let command =
                    |place| ProbeCommand::Read { lbn: Lbn(place * 80_000_000), sectors: 8, from_media: true };
                let sent: Vec<_> = (0..depth).map(|place| disk.send(command(place), Instant::ZERO)).collect();
                for (place, ticket) in sent.into_iter().enumerate() {
                    let answer = disk.answer(ticket).await;
                    if place == 0 {
                        ends.push(answer.ended);
                    }
                }
            }
            ends
        });
        let ends = drive::run(&mut extraction, &mut disk, |_, _, _| true);
        let ends = ends.expect("it cannot fail").expect("it is not cancelled");
        ends.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn same_block_returns_after_whole_turns() {
        let period = 60e9 / 7199.6;
        for (noise, tolerance) in
            [(Noise::NONE, 100.0), (Noise { late_share: 0.0, ..Noise::USUAL }, 80_000.0)]
        {
            for turn in turns(noise, 1) {
                let turns = turn.0 as f64 / period;
                let off = (turns - turns.round()).abs() * period;
                assert!(turns > 0.9 && off < tolerance, "{turn} is off by {off} ns");
            }
        }
    }

    #[test]
    fn queued_reads_take_less_than_one_seek_each() {
        // One after the other they would take a seek each.
        let (alone, many) = (turns(Noise::NONE, 1), turns(Noise::NONE, 16));
        assert_eq!((alone.len(), many.len()), (49, 49));
        assert!(many.iter().all(|turn| turn.0 < 16 * 8_000_000), "{many:?}");
    }

    #[test]
    fn late_share_delays_some_answers() {
        let period = 60e9 / 7199.6;
        let is_off = |turn: &&Nanos| ((turn.0 as f64 / period).fract() - 0.5).abs() < 0.45;
        let late = turns(Noise { late_share: 0.5, ..Noise::USUAL }, 1);
        assert!(late.iter().filter(is_off).count() > 10, "{late:?}");
    }
}
