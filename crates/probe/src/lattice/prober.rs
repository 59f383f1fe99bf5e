//! Angles of sectors, by reading them.
//!
//! A read ends when its last sector has passed the head, so the time of its end, in turns, is an angle. Reading one reference sector again
//! every second keeps the clock in step with the disk. A reading that agrees with its prediction is accepted at once; any other may be
//! late, and is repeated until two readings agree.
//!
//! If the disk has a queue, sectors with predicted angles are read together, in whatever order the disk serves them, because only the end
//! of a read counts. The prober first tests, with the reference as one of two, whether reads in flight together end as they would alone.

use super::clock::Clock;
use super::pattern::wrap;
use super::reader::{Cache, Reader};
use super::{LatticeError, LatticeResult};
use crate::{Disk, ProbeCommand};
use headstack_model::{Instant, Lbn, Nanos};
use std::collections::BTreeMap;

/// Time between two readings of the reference. Clocks that drift apart by 10⁻⁵ are then off by 10 µs, the noise of a usual host.
const REFERENCE: Nanos = Nanos(1_000_000_000);
/// Reads after which a sector without a steady angle is given up: it is very unlikely that half of them are late by chance.
const MOST: usize = 24;
/// Failed reads after which a sector counts as unreadable.
const MOST_FAILED: usize = 2;
/// Maximum readings for an angle: they reduce the noise to a fourth; twice the probes would gain another 30 %.
const MOST_VOTES: f64 = 16.0;
/// Standard deviations within which a reading matches its prediction. Normal noise exceeds them once in 1.7 million readings; a
/// walk takes fewer.
const TOLERANCE: f64 = 5.0;
/// Standard deviations of an angle that fit into the gap between tracks. A tolerance is then a sixth of the gap, and that of a prediction
/// (`boundary::PREDICTED`) 0.4 of it: less than half, so that no angle matches both tracks.
const GAP_DEVIATIONS: f64 = 30.0;
/// Gap between tracks, in turns, that must be distinguishable from none while no gap is known, and to count sectors: 0.7 ms at 7,200 rpm,
/// less than most drives take to change tracks. [`Prober::refine_resolution`] finds smaller ones (`noise::small_skew_is_found_in_noise`).
const LEAST_GAP: f64 = 0.08;
/// Gap in standard deviations of a reading that no mean of readings distinguishes from none. *Source:* assumption, as readings have errors in
/// common.
const LEAST_RESOLVED: f64 = 2.0;
/// Standard deviations between the earliest and the latest of readings that are taken for one angle: ±3.
const SPREAD: f64 = 6.0;
/// Standard deviations of the reference that show a drift of the clock, which is uncertain itself: [`TOLERANCE`] and one.
const SURPRISE: f64 = 6.0;
/// Tolerances between two readings of one angle: the difference has √2 = 1.4 deviations of a reading.
const AGREE: f64 = 1.5;
/// Readings of one angle that have to agree, and their number in a region that stays doubtful on a busy host, where two may be late by the
/// same time.
const AGREEING: (usize, usize) = (2, 3);
/// Share of late readings above which a doubtful region may come from two readings that were late by the same time. By trial: of 1,000
/// extractions of a small disk with 5 % late answers none was wrong, of 2,000 with 10 or 20 % seven were.
const BUSY_SHARE: f64 = 0.08;
/// Sectors without a steady angle that a disk may have; beyond, its answers are too noisy.
const MOST_UNSTEADY: usize = 100;
/// Sectors that are read together with the reference: adjacent, near, and at shares of the disk.
const NEAR_SECTORS: [u64; 4] = [1, 2, 37, 500];
const FAR_SHARES: u64 = 8;
/// Standard deviations within which the reference, read with the others, ends as if it were read alone, and the least share of such reads.
const SAME: (f64, f64) = (3.0, 0.8);
/// Maximum number of sectors requested together: half of the 32 that NCQ allows. By trial.
const MOST_TOGETHER: usize = 16;
/// Physical sectors of the smallest disk whose tracks can be distinguished.
const LEAST_SECTORS: u64 = 1000;
/// Maximum number of cached angles and ends of tracks: about 1 MB.
pub(super) const REMEMBERED: usize = 20_000;

/// Required accuracy of angles, which sets the number of readings for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolution {
    /// Enough to distinguish the gap between two tracks from none.
    TellTracksApart,
    /// Enough to count the sectors of a turn.
    CountSectors,
}

/// Reads sectors and determines their angles.
#[derive(Debug)]
pub(super) struct Prober {
    pub(super) disk: Disk,
    pub(super) clock: Clock,
    /// Physical sectors of the disk.
    pub(super) sectors: u64,
    /// Blocks of a physical sector.
    pub(super) blocks: u64,
    pub(super) probes: u64,
    pub(super) cache: Cache,
    last_check: Instant,
    /// Readings per angle, if one alone is too uncertain.
    votes: usize,
    /// The gap between tracks, in turns, that must be distinguishable from none.
    gap: f64,
    resolution: Resolution,
    settled: BTreeMap<u64, f64>,
    /// Whether a track ends before a sector, by lost turns.
    pub(super) turned: BTreeMap<u64, bool>,
    together: usize,
    /// First readings of sectors that were requested together.
    ahead: BTreeMap<u64, f64>,
    /// Sectors whose angle differed at each reading.
    unsteady: usize,
    /// Readings that have to agree where none agrees with a prediction.
    agreeing: usize,
    /// Readings of angles, and those that disagreed with the angle that was found.
    readings: (u64, u64),
}

impl Prober {
    /// Determines the period.
    pub(super) async fn begin(disk: Disk) -> LatticeResult<Prober> {
        let info = disk.info();
        let blocks = u64::from(info.physical_sectors.max(1));
        let sectors = info.sectors / blocks;
        if sectors < LEAST_SECTORS {
            return Err(LatticeError::TooSmall(sectors));
        }
        disk.report_progress("finding the spindle's period", 0.0);
        let mut probes = 0;
        let mut reader = Reader { disk: &disk, sectors, blocks, probes: &mut probes };
        let (clock, cache) = reader.begin().await?;
        let is_cached = cache.is_there();
        let last_check = disk.now();
        let (settled, unsteady) = (BTreeMap::new(), 0);
        let (together, ahead) = (1, BTreeMap::new());
        let mut prober = Prober {
            disk,
            clock,
            sectors,
            blocks,
            probes,
            cache,
            last_check,
            votes: 1,
            gap: LEAST_GAP,
            resolution: Resolution::TellTracksApart,
            settled,
            turned: BTreeMap::new(),
            together,
            ahead,
            unsteady,
            agreeing: AGREEING.0,
            readings: (0, 0),
        };
        prober.resolve_gap(LEAST_GAP);
        if info.depth > 1 && !is_cached {
            prober.try_together(info.depth.min(MOST_TOGETHER)).await;
        }
        Ok(prober)
    }

    /// Tests whether reads in flight together end at the same angles as reads alone.
    async fn try_together(&mut self, depth: usize) {
        let part = self.sectors / FAR_SHARES;
        let far = (1..FAR_SHARES).map(|share| share * part);
        let mut off = Vec::new();
        for other in NEAR_SECTORS.into_iter().chain(far) {
            for both in [[0, other], [other, 0]] {
                let seen = self.read_together(&both).await;
                off.extend(seen.into_iter().filter(|(sector, _)| *sector == 0).map(|(_, angle)| angle));
            }
        }
        off.sort_by(f64::total_cmp);
        let steady = off.iter().filter(|off| off.abs() < SAME.0 * self.clock.sigma).count();
        let is_same = off.get(off.len() / 2).is_some_and(|middle| middle.abs() < self.clock.sigma);
        if is_same && steady as f64 > SAME.1 * off.len() as f64 {
            self.together = depth;
        }
    }

    /// Reads some sectors once each, requested at once.
    async fn read_together(&mut self, sectors: &[u64]) -> Vec<(u64, f64)> {
        let mut tickets = Vec::new();
        for sector in sectors {
            let read =
                ProbeCommand::Read { lbn: self.lbn(*sector), sectors: self.blocks as u32, from_media: true };
            tickets.push((*sector, self.disk.send(read, Instant::ZERO)));
        }
        self.probes += sectors.len() as u64;
        let mut seen = Vec::new();
        for (sector, ticket) in tickets {
            let answer = self.disk.answer(ticket).await;
            if answer.is_done() {
                seen.push((sector, self.clock.angle(answer.ended)));
            }
        }
        seen
    }

    /// Number of sectors that may be requested together; 1 if each has to be read alone.
    pub(super) fn together(&self) -> usize {
        if self.votes > 1 { 1 } else { self.together }
    }

    /// Reads sectors that will be needed next, as many at once as the disk takes.
    pub(super) async fn read_ahead(&mut self, sectors: &[u64]) -> LatticeResult<()> {
        let is_wanted = |sector: &u64| {
            *sector < self.sectors && !self.settled.contains_key(sector) && !self.ahead.contains_key(sector)
        };
        let wanted: Vec<u64> = sectors.iter().copied().filter(is_wanted).collect();
        if wanted.len() < 2 || self.together() < 2 {
            return Ok(());
        }
        if self.ahead.len() > REMEMBERED {
            self.ahead.clear();
        }
        for some in wanted.chunks(self.together()) {
            self.keep_time().await?;
            let seen = self.read_together(some).await;
            self.ahead.extend(seen);
        }
        Ok(())
    }

    /// Tolerance of a predicted angle, in turns.
    pub(super) fn tolerance(&self) -> f64 {
        TOLERANCE * self.clock.sigma / libm::sqrt(self.votes as f64)
    }

    pub(super) fn usual_tolerance(&self) -> f64 {
        TOLERANCE * self.clock.sigma / libm::sqrt(self.votes_for(self.gap) as f64)
    }

    /// Sets the readings per angle so that this gap between tracks is distinguishable from none.
    pub(super) fn resolve_gap(&mut self, gap: f64) {
        self.gap = gap;
        self.set_votes();
    }

    /// Sets how exact angles are. Returns whether they are more exact than before; earlier readings are forgotten then.
    pub(super) fn set_resolution(&mut self, resolution: Resolution) -> bool {
        let before = self.votes;
        self.resolution = resolution;
        self.set_votes();
        if self.votes > before {
            self.forget();
        }
        self.votes > before
    }

    /// Takes more readings per angle, to distinguish smaller gaps. Returns whether the number grew.
    pub(super) fn refine_resolution(&mut self) -> bool {
        let before = self.votes;
        while self.votes == before && (self.votes as f64) < MOST_VOTES {
            self.resolve_gap(self.gap / 2.0);
        }
        self.forget();
        self.votes > before
    }

    fn set_votes(&mut self) {
        let usual = self.votes_for(self.gap);
        self.votes = match self.resolution {
            Resolution::TellTracksApart => usual,
            Resolution::CountSectors => usual.max(self.votes_for(LEAST_GAP)),
        };
    }

    fn votes_for(&self, gap: f64) -> usize {
        // No number of readings distinguishes what lies within the noise of one.
        let gap = if gap.abs() < LEAST_RESOLVED * self.clock.sigma { LEAST_GAP } else { gap.abs() };
        let needed = GAP_DEVIATIONS * self.clock.sigma / gap;
        libm::ceil(needed * needed).clamp(1.0, MOST_VOTES) as usize
    }

    pub(super) fn lbn(&self, sector: u64) -> Lbn {
        Lbn(sector * self.blocks)
    }

    async fn end(&mut self, sector: u64) -> LatticeResult<Option<Instant>> {
        let (sectors, blocks) = (self.sectors, self.blocks);
        let mut reader = Reader { disk: &self.disk, sectors, blocks, probes: &mut self.probes };
        reader.on_media(sector, &mut self.cache).await
    }

    async fn reading(&mut self, sector: u64) -> LatticeResult<Option<f64>> {
        self.readings.0 += 1;
        if let Some(angle) = self.ahead.remove(&sector) {
            return Ok(Some(angle));
        }
        self.keep_time().await?;
        self.voted(sector).await
    }

    /// The angle of a sector by as many readings as needed, without late ones.
    async fn voted(&mut self, sector: u64) -> LatticeResult<Option<f64>> {
        let first = self.end(sector).await?.map(|end| self.clock.angle(end));
        let Some(first) = first.filter(|_| self.votes > 1) else { return Ok(first) };
        let mut off = vec![0.0];
        loop {
            off.sort_by(f64::total_cmp);
            let together = closest(&off, SPREAD * self.clock.sigma);
            // Late readings agree with none.
            if together.len() >= self.votes && 2 * together.len() > off.len() || off.len() > MOST {
                return Ok(Some(wrap(first + together.iter().sum::<f64>() / together.len() as f64)));
            }
            let Some(end) = self.end(sector).await? else { return Ok(None) };
            off.push(wrap(self.clock.angle(end) - first));
        }
    }

    /// Reads the reference as often as the clock's uncertainty requires.
    async fn keep_time(&mut self) -> LatticeResult<()> {
        // The clock's error is common to all angles, so it must be less than that of a mean of readings.
        let most = self.clock.sigma / libm::sqrt((2 * self.votes - 1) as f64);
        for _ in 0..MOST {
            let now = self.disk.now();
            if now.since(self.last_check) <= REFERENCE && self.clock.uncertainty(now) <= most {
                break;
            }
            self.check().await?;
        }
        Ok(())
    }

    /// Reads the reference, and corrects the clock.
    async fn check(&mut self) -> LatticeResult<()> {
        let within = SURPRISE * self.clock.sigma / libm::sqrt(self.votes as f64);
        let mut before: Option<f64> = None;
        for _ in 0..MOST {
            let Some(angle) = self.voted(0).await? else { continue };
            // A deviation twice is a drift.
            if angle.abs() < within || before.is_some_and(|before| wrap(before - angle).abs() < within) {
                self.last_check = self.disk.now();
                self.clock.correct(self.last_check, angle, self.votes);
                self.set_votes();
                return Ok(());
            }
            before = Some(angle);
        }
        Err(LatticeError::Unsteady { lbn: Lbn(0), reads: MOST })
    }

    /// A sector's angle, once enough readings agree; `None` where it cannot be read.
    pub(super) async fn angle(&mut self, sector: u64) -> LatticeResult<Option<f64>> {
        if let Some(angle) = self.settled.get(&sector) {
            return Ok(Some(*angle));
        }
        self.settle(sector, Vec::new()).await
    }

    async fn settle(&mut self, sector: u64, mut seen: Vec<f64>) -> LatticeResult<Option<f64>> {
        let within = AGREE * self.tolerance();
        let mut failed = 0;
        while seen.len() + failed < MOST {
            let Some(angle) = self.reading(sector).await? else {
                failed += 1;
                if failed > MOST_FAILED {
                    return Ok(None);
                }
                continue;
            };
            if let Some(angle) = self.agreed(&seen, angle, within) {
                self.remember(sector, angle);
                return Ok(Some(angle));
            }
            seen.push(angle);
        }
        // A sector that the disk rereads has no angle, like an unreadable one. If many have none, the answers are noisy.
        self.unsteady += 1;
        if self.unsteady > MOST_UNSTEADY {
            Err(LatticeError::Unsteady { lbn: self.lbn(sector), reads: MOST })
        } else {
            Ok(None)
        }
    }

    /// The mean of a reading and of earlier ones within a distance of it, if they are enough.
    fn agreed(&mut self, seen: &[f64], angle: f64, within: f64) -> Option<f64> {
        let near: Vec<f64> =
            seen.iter().map(|before| wrap(before - angle)).filter(|off| off.abs() < within).collect();
        if near.len() + 1 < self.agreeing {
            return None;
        }
        self.readings.1 += (seen.len() - near.len()) as u64;
        Some(wrap(angle + near.iter().sum::<f64>() / (near.len() + 1) as f64))
    }

    /// Whether late readings are frequent enough that some of them agree by chance.
    pub(super) fn is_host_busy(&self) -> bool {
        self.readings.1 as f64 > BUSY_SHARE * self.readings.0 as f64
    }

    /// Requires more readings to agree from now on.
    pub(super) fn require_more_agreement(&mut self) {
        self.agreeing = AGREEING.1;
        self.forget();
    }

    /// The angle of a sector: the first reading where it agrees with the prediction, otherwise two that agree.
    pub(super) async fn expect(&mut self, sector: u64, predicted: f64) -> LatticeResult<Option<f64>> {
        if let Some(angle) = self.settled.get(&sector) {
            return Ok(Some(*angle));
        }
        let within = self.tolerance();
        let mut seen = Vec::new();
        for _ in 0..2 {
            match self.reading(sector).await? {
                Some(angle) if wrap(angle - predicted).abs() <= within => {
                    self.readings.1 += seen.len() as u64;
                    self.remember(sector, angle);
                    return Ok(Some(angle));
                }
                Some(angle) => {
                    if let Some(angle) = self.agreed(&seen, angle, AGREE * within) {
                        self.remember(sector, angle);
                        return Ok(Some(angle));
                    }
                    seen.push(angle);
                }
                None => {}
            }
        }
        self.settle(sector, seen).await
    }

    /// The angle of a sector, if a single reading is within this many turns of the predicted one.
    pub(super) async fn one_reading_near(
        &mut self,
        sector: u64,
        predicted: f64,
        within: f64,
    ) -> LatticeResult<Option<f64>> {
        let angle = match self.settled.get(&sector) {
            Some(angle) => Some(*angle),
            None => self.reading(sector).await?,
        };
        Ok(angle.filter(|angle| wrap(angle - predicted).abs() <= within))
    }

    fn remember(&mut self, sector: u64, angle: f64) {
        if self.settled.len() >= REMEMBERED {
            self.settled.clear();
        }
        self.settled.insert(sector, angle);
    }

    pub(super) fn forget_one(&mut self, sector: u64) {
        self.settled.remove(&sector);
        self.ahead.remove(&sector);
        self.turned.remove(&sector);
    }

    pub(super) fn forget(&mut self) {
        self.settled.clear();
        self.ahead.clear();
        self.turned.clear();
    }
}

/// The largest subset of sorted values within a distance of each other.
fn closest(values: &[f64], within: f64) -> &[f64] {
    let until = |first: usize| values.partition_point(|value| *value <= values[first] + within);
    let first = (0..values.len()).max_by_key(|first| until(*first) - first).unwrap_or(0);
    &values[first..until(first)]
}
