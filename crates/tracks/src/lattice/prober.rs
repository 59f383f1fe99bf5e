//! Angles of sectors, by reading them.
//!
//! A read ends when its last sector has passed the head, so the time of its end, in turns, is an angle. The clock is
//! held to the disk by reading one place again every second. Late answers are known by being surprises: what was
//! predicted is believed, what was not is read again until two readings agree. An answer quicker than media can be
//! comes from a cache: others are read until it no longer does.
//!
//! Where the disk queues, sectors whose angles are foretold are asked for together, in whatever order it serves them: an angle
//! is that of the end alone. Whether ends are where they would be alone is tried out first, with the reference as one of two.
//! What comes of it is a first reading, like any; a surprise is read again by itself.

use super::LatticeError;
use super::cell::wrap;
use super::clock::Clock;
use crate::{Ask, Disk};
use headstack_model::{Lbn, Nanos};
use std::collections::BTreeMap;

/// Reads of one place by which the period is found, and those where others have to be read between them.
const FIRST: (usize, usize) = (120, 48);
/// Share of them that has to come round at whole turns.
const STEADY: f64 = 0.6;
/// Time between two looks at the reference.
const REFERENCE: Nanos = Nanos(1_000_000_000);
/// A read again takes a turn; no disk turns in less than this.
const QUICK: Nanos = Nanos(1_500_000);
/// Reads after which a sector without a steady angle is given up.
const MOST: usize = 24;
/// Most others read to have a cache forget.
const MOST_OTHERS: usize = 4_096;
/// Most readings for an angle.
const MOST_VOTES: f64 = 16.0;
/// Sectors without a steady angle that a disk may have.
const MOST_UNSTEADY: usize = 100;
/// Others with which the reference is asked for together: beside it, near and far away, as shares of the disk.
const BESIDE: [u64; 4] = [1, 2, 37, 500];
const AWAY: u64 = 8;
/// Most sectors asked for together.
const MOST_TOGETHER: usize = 16;
/// Angles remembered.
const REMEMBERED: usize = 20_000;

/// Reads sectors and says at which angles they were.
#[derive(Debug)]
pub(super) struct Prober {
    pub(super) disk: Disk,
    pub(super) clock: Clock,
    /// Physical sectors of the disk.
    pub(super) sectors: u64,
    /// Blocks of a physical sector.
    pub(super) blocks: u64,
    pub(super) probes: u64,
    cache: Cache,
    looked: Nanos,
    /// Readings that make an angle, where one alone is too uncertain.
    votes: usize,
    settled: BTreeMap<u64, f64>,
    /// Sectors that may be asked for together.
    together: usize,
    /// First readings of sectors that were asked for together.
    ahead: BTreeMap<u64, f64>,
    /// Sectors that came at another angle each time.
    unsteady: usize,
}

/// A cache between the reads and the media.
#[derive(Debug)]
struct Cache {
    /// Answers within this come from it.
    hit: Nanos,
    /// Other sectors to read until it has forgotten one.
    others: usize,
    /// Where they lie.
    scatter: u64,
}

/// Reads sectors of a disk before there is a clock.
#[derive(Debug)]
struct Reader<'a> {
    disk: &'a Disk,
    sectors: u64,
    blocks: u64,
    probes: &'a mut u64,
}

impl Reader<'_> {
    async fn read(&mut self, sector: u64) -> Option<crate::Answer> {
        *self.probes += 1;
        let answer = self.disk.read(Lbn(sector * self.blocks), self.blocks as u32).await;
        answer.is_done().then_some(answer)
    }

    /// Reads a sector from the media; `None` where it cannot be read.
    async fn on_media(&mut self, sector: u64, cache: &mut Cache) -> Result<Option<Nanos>, LatticeError> {
        let Some(mut answer) = self.read(sector).await else { return Ok(None) };
        while answer.took() <= cache.hit {
            if cache.others > MOST_OTHERS {
                let (lbn, micros) = (Lbn(sector * self.blocks), answer.took().0 / 1000);
                return Err(LatticeError::Cached { lbn, micros, others: cache.others / 2 });
            }
            self.forget(cache).await;
            match self.read(sector).await {
                Some(again) => answer = again,
                None => return Ok(None),
            }
            if answer.took() <= cache.hit {
                cache.others *= 2;
            }
        }
        Ok(Some(answer.ended))
    }

    /// Reads others.
    async fn forget(&mut self, cache: &mut Cache) {
        for _ in 0..cache.others {
            // Steps of the golden section come near none of those before for long.
            cache.scatter = cache.scatter.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let place = (u128::from(cache.scatter) * u128::from(self.sectors)) >> 64;
            self.read(place as u64).await;
        }
    }
}

impl Prober {
    /// Finds the period.
    pub(super) async fn begin(disk: Disk) -> Result<Prober, LatticeError> {
        let facts = disk.facts();
        let blocks = u64::from(facts.physical_sectors.max(1));
        let sectors = facts.sectors / blocks;
        if sectors < 1000 {
            return Err(LatticeError::TooSmall(sectors));
        }
        disk.tell("finding the spindle's period", 0.0);
        let mut probes = 0;
        let mut reader = Reader { disk: &disk, sectors, blocks, probes: &mut probes };
        let mut cache = Cache { hit: Nanos::ZERO, others: 8, scatter: 1 };
        let mut took = Vec::new();
        for _ in 0..16 {
            took.extend(reader.read(0).await.map(|answer| answer.took()));
        }
        took.sort();
        let Some(usual) = took.get(took.len() / 2).copied() else {
            return Err(LatticeError::Unreadable { lbn: Lbn(0) });
        };
        if usual < QUICK {
            cache.hit = Nanos(2 * usual.0 + 50_000);
        }
        let count = if usual < QUICK { FIRST.1 } else { FIRST.0 };
        let mut ends = Vec::new();
        for _ in 0..count {
            ends.extend(reader.on_media(0, &mut cache).await?);
        }
        let needed = (count as f64 * STEADY) as usize;
        let lost = |steady| LatticeError::NoPeriod { reads: count, steady, needed };
        if ends.len() < needed {
            return Err(lost(ends.len()));
        }
        let period = if usual < QUICK { Clock::common_turn(&ends) } else { Clock::usual_gap(&ends) };
        let clock = Clock::of_readings(&ends, period, needed).map_err(lost)?;
        let looked = disk.now();
        let (settled, unsteady) = (BTreeMap::new(), 0);
        let (together, ahead) = (1, BTreeMap::new());
        let mut prober = Prober {
            disk,
            clock,
            sectors,
            blocks,
            probes,
            cache,
            looked,
            votes: 1,
            settled,
            together,
            ahead,
            unsteady,
        };
        if facts.depth > 1 && usual >= QUICK {
            prober.try_together(facts.depth.min(MOST_TOGETHER)).await;
        }
        Ok(prober)
    }

    /// Finds out whether ends of reads that are under way together are where they would be alone.
    async fn try_together(&mut self, depth: usize) {
        let part = self.sectors / AWAY;
        let far = (1..AWAY).map(|share| share * part);
        let mut off = Vec::new();
        for other in BESIDE.into_iter().chain(far) {
            for both in [[0, other], [other, 0]] {
                let seen = self.read_together(&both).await;
                off.extend(seen.into_iter().filter(|(sector, _)| *sector == 0).map(|(_, angle)| angle));
            }
        }
        off.sort_by(f64::total_cmp);
        let steady = off.iter().filter(|off| off.abs() < 3.0 * self.clock.sigma).count();
        let is_same = off.get(off.len() / 2).is_some_and(|middle| middle.abs() < self.clock.sigma);
        if is_same && steady as f64 > 0.8 * off.len() as f64 {
            self.together = depth;
        }
    }

    /// One reading of each of some sectors that are asked for at once.
    async fn read_together(&mut self, sectors: &[u64]) -> Vec<(u64, f64)> {
        let mut tickets = Vec::new();
        for sector in sectors {
            let read = Ask::Read { lbn: self.lbn(*sector), sectors: self.blocks as u32, from_media: true };
            tickets.push((*sector, self.disk.send(read, Nanos::ZERO)));
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

    /// How many sectors may be asked for together; 1 where each has to be asked for by itself.
    pub(super) fn together(&self) -> usize {
        if self.votes > 1 { 1 } else { self.together }
    }

    /// Asks for sectors that will be needed next, as many at once as may be.
    pub(super) async fn ask_ahead(&mut self, sectors: &[u64]) -> Result<(), LatticeError> {
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
            if self.disk.now().since(self.looked) > REFERENCE {
                self.look().await?;
            }
            let seen = self.read_together(some).await;
            self.ahead.extend(seen);
        }
        Ok(())
    }

    /// Within how many turns an angle has to be predicted.
    pub(super) fn tolerance(&self) -> f64 {
        5.0 * self.clock.sigma / libm::sqrt(self.votes as f64)
    }

    /// Takes as many readings for an angle as are needed to tell a gap between tracks from none.
    pub(super) fn tell_apart(&mut self, gap: f64) {
        let needed = 30.0 * self.clock.sigma / gap.abs().max(1e-6);
        self.votes = libm::ceil(needed * needed).clamp(1.0, MOST_VOTES) as usize;
    }

    /// The number of a sector's first block.
    pub(super) fn lbn(&self, sector: u64) -> Lbn {
        Lbn(sector * self.blocks)
    }

    async fn end(&mut self, sector: u64) -> Result<Option<Nanos>, LatticeError> {
        let (sectors, blocks) = (self.sectors, self.blocks);
        let mut reader = Reader { disk: &self.disk, sectors, blocks, probes: &mut self.probes };
        reader.on_media(sector, &mut self.cache).await
    }

    /// One reading of a sector's angle.
    async fn reading(&mut self, sector: u64) -> Result<Option<f64>, LatticeError> {
        if let Some(angle) = self.ahead.remove(&sector) {
            return Ok(Some(angle));
        }
        if self.disk.now().since(self.looked) > REFERENCE {
            self.look().await?;
        }
        let first = self.end(sector).await?.map(|end| self.clock.angle(end));
        let Some(first) = first.filter(|_| self.votes > 1) else { return Ok(first) };
        let mut off = vec![0.0];
        while off.len() < self.votes {
            let Some(end) = self.end(sector).await? else { return Ok(None) };
            off.push(wrap(self.clock.angle(end) - first));
        }
        off.sort_by(f64::total_cmp);
        // Without the quarters at both ends, which hold the late ones.
        let middle = &off[off.len() / 4..off.len() - off.len() / 4];
        Ok(Some(wrap(first + middle.iter().sum::<f64>() / middle.len() as f64)))
    }

    /// Looks when the reference comes by.
    async fn look(&mut self) -> Result<(), LatticeError> {
        let within = 6.0 * self.clock.sigma;
        let mut before: Option<f64> = None;
        for _ in 0..MOST {
            let Some(end) = self.end(0).await? else { continue };
            let angle = self.clock.angle(end);
            // A surprise twice is a drift.
            if angle.abs() < within || before.is_some_and(|before| wrap(before - angle).abs() < within) {
                self.clock.correct(end);
                self.looked = self.disk.now();
                return Ok(());
            }
            before = Some(angle);
        }
        Err(LatticeError::Unsteady { lbn: Lbn(0), reads: MOST })
    }

    /// A sector's angle, once two readings agree; `None` where it cannot be read.
    pub(super) async fn angle(&mut self, sector: u64) -> Result<Option<f64>, LatticeError> {
        if let Some(angle) = self.settled.get(&sector) {
            return Ok(Some(*angle));
        }
        self.settle(sector, Vec::new()).await
    }

    async fn settle(&mut self, sector: u64, mut seen: Vec<f64>) -> Result<Option<f64>, LatticeError> {
        let within = 1.5 * self.tolerance();
        let mut failed = 0;
        while seen.len() + failed < MOST {
            let Some(angle) = self.reading(sector).await? else {
                failed += 1;
                if failed > 2 {
                    return Ok(None);
                }
                continue;
            };
            if let Some(before) = seen.iter().find(|before| wrap(**before - angle).abs() < within) {
                let angle = wrap(before + wrap(angle - before) / 2.0);
                self.remember(sector, angle);
                return Ok(Some(angle));
            }
            seen.push(angle);
        }
        // A sector that the disk reads with effort comes when it does: as one that cannot be read. Where many are so, the answers are.
        self.unsteady += 1;
        match self.unsteady > MOST_UNSTEADY {
            true => Err(LatticeError::Unsteady { lbn: self.lbn(sector), reads: MOST }),
            false => Ok(None),
        }
    }

    /// The angle of a sector of which one is predicted: believed at once where it is that, settled otherwise.
    pub(super) async fn expect(&mut self, sector: u64, predicted: f64) -> Result<Option<f64>, LatticeError> {
        if let Some(angle) = self.settled.get(&sector) {
            return Ok(Some(*angle));
        }
        let within = self.tolerance();
        let mut seen = Vec::new();
        for _ in 0..2 {
            match self.reading(sector).await? {
                Some(angle) if wrap(angle - predicted).abs() <= within => {
                    self.remember(sector, angle);
                    return Ok(Some(angle));
                }
                Some(angle) => seen.push(angle),
                None => {}
            }
            if let [first, second] = seen[..]
                && wrap(first - second).abs() < 1.5 * within
            {
                let angle = wrap(first + wrap(second - first) / 2.0);
                self.remember(sector, angle);
                return Ok(Some(angle));
            }
        }
        self.settle(sector, seen).await
    }

    /// The angle of a sector, if one reading has it within so many turns of a predicted one.
    pub(super) async fn seen(
        &mut self,
        sector: u64,
        predicted: f64,
        within: f64,
    ) -> Result<Option<f64>, LatticeError> {
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

    /// Forgets what was read of one sector.
    pub(super) fn forget_one(&mut self, sector: u64) {
        self.settled.remove(&sector);
        self.ahead.remove(&sector);
    }

    /// Forgets what was read, so that it is read anew.
    pub(super) fn forget(&mut self) {
        self.settled.clear();
        self.ahead.clear();
    }
}
