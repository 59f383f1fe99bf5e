//! Reads single sectors from the media, bypassing a cache.
//!
//! An answer quicker than the media comes from a cache. The reader then reads other sectors until the cache has evicted the wanted one. A
//! late answer does not show whether it came from a cache, so recently read sectors count as cached. If reads of one place end at no
//! multiple of a turn, though no answer is quick, the cache counts as slow, and every read is preceded by others.

use super::clock::Clock;
use super::{LatticeError, LatticeResult};
use crate::{Answer, Disk};
use headstack_model::{Instant, Lbn, Nanos};
use std::collections::VecDeque;

/// Reads of one place whose median time shows whether there is a cache.
const TRIED: usize = 16;
/// Reads of one place to find the period, and their number if others have to be read between them, which take longer.
const FIRST: (usize, usize) = (64, 48);
/// Share of them that ends at whole turns. By trial: more than chance (`clock::EVEN`), less than all without late answers.
const STEADY: f64 = 0.6;
/// Rereading a place takes a turn; no disk turns in less than this (40,000 rpm).
const QUICK: Nanos = Nanos(1_500_000);
/// Other sectors read to evict one, at first and at most: drives have 1 to 1,000 segments. If no answer is quick, at most
/// [`SLOW_OTHERS`], because each costs a turn.
const OTHERS: usize = 2;
const MOST_OTHERS: usize = 4_096;
const SLOW_OTHERS: usize = 128;
/// Maximum time of the quickest answer of such a cache: a tenth of the shortest turn in use, 4 ms.
const SLOW_HIT: Nanos = Nanos(400_000);
/// Time added to twice that of a hit, below which answers are hits: hosts delay answers by tens of microseconds.
const HIT_MARGIN: Nanos = Nanos(50_000);
/// Number of answers as quick as a hit before more sectors are read in between: once, the media may have been as quick.
const QUICK_ANSWERS: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Answers within this time come from it.
    hit: Nanos,
    /// Other sectors that evict one; zero without a cache.
    others: usize,
    /// State of their positions.
    scatter: u64,
    /// The last sectors read, which it may hold.
    held: VecDeque<u64>,
    /// Whether its answers are as slow as the media's, so that a hit on read-ahead data does not show.
    is_slow: bool,
}

impl Cache {
    pub(super) fn is_there(&self) -> bool {
        self.others > 0
    }

    /// Sets the hit time from one hit.
    fn take_for_hits(&mut self, one: Nanos) {
        self.hit = Nanos(2 * one.0 + HIT_MARGIN.0);
    }
}

#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) disk: &'a Disk,
    pub(super) sectors: u64,
    pub(super) blocks: u64,
    pub(super) probes: &'a mut u64,
}

impl Reader<'_> {
    /// Determines whether there is a cache, and the length of a turn.
    pub(super) async fn begin(&mut self) -> LatticeResult<(Clock, Cache)> {
        let mut tried = Vec::new();
        for _ in 0..TRIED {
            tried.extend(self.read(0).await);
        }
        let mut took: Vec<Nanos> = tried.iter().map(|answer| answer.took()).collect();
        took.sort();
        let Some(usual) = took.get(took.len() / 2).copied() else {
            return Err(LatticeError::Unreadable { lbn: Lbn(0) });
        };
        let mut cache = Cache::default();
        if usual < QUICK {
            cache.take_for_hits(usual);
            cache.others = OTHERS;
            tried.clear();
        }
        let mut ends: Vec<Instant> = tried.iter().map(|answer| answer.ended).collect();
        loop {
            let lost = match self.clock(&mut cache, std::mem::take(&mut ends)).await? {
                Ok(clock) => return Ok((clock, cache)),
                Err(lost) => lost,
            };
            if cache.others >= SLOW_OTHERS {
                return Err(lost);
            }
            // On a busy host a cache may be as slow as the media.
            cache.is_slow = true;
            cache.take_for_hits(took[0].min(SLOW_HIT));
            cache.others = (4 * cache.others).max(OTHERS);
        }
    }

    /// Reads one place repeatedly and fits the clock to the ends of the reads, after those in `ends`; the inner error says why none fits.
    async fn clock(
        &mut self,
        cache: &mut Cache,
        mut ends: Vec<Instant>,
    ) -> LatticeResult<Result<Clock, LatticeError>> {
        let reads = if cache.is_there() { FIRST.1 } else { FIRST.0 };
        let needed = (reads as f64 * STEADY) as usize;
        for _ in ends.len()..reads {
            ends.extend(self.on_media(0, cache).await?);
        }
        let lost = |steady| LatticeError::NoPeriod { reads, steady, needed };
        if ends.len() < needed {
            return Ok(Err(lost(ends.len())));
        }
        let period = if cache.is_there() { Clock::common_turn(&ends) } else { Clock::usual_gap(&ends) };
        Ok(Clock::of_readings(&ends, period, needed).map_err(lost))
    }

    async fn read(&mut self, sector: u64) -> Option<Answer> {
        self.read_some(sector, 1).await
    }

    async fn read_some(&mut self, sector: u64, count: u64) -> Option<Answer> {
        *self.probes += 1;
        let answer = self.disk.read(Lbn(sector * self.blocks), (count * self.blocks) as u32).await;
        answer.is_done().then_some(answer)
    }

    /// Reads a sector from the media; returns when, or `None` if it is unreadable.
    pub(super) async fn on_media(
        &mut self,
        sector: u64,
        cache: &mut Cache,
    ) -> LatticeResult<Option<Instant>> {
        if cache.held.contains(&sector) || cache.is_slow {
            self.forget(cache).await;
        }
        let Some(mut answer) = self.read(sector).await else { return Ok(None) };
        let mut quick = 0;
        while answer.took() <= cache.hit {
            if cache.others > MOST_OTHERS {
                let (lbn, micros) = (Lbn(sector * self.blocks), answer.took().0 / 1000);
                return Err(LatticeError::Cached { lbn, micros, others: cache.others / 2 });
            }
            quick += 1;
            if quick > QUICK_ANSWERS {
                cache.others *= 2;
            }
            self.forget(cache).await;
            match self.read(sector).await {
                Some(again) => answer = again,
                None => return Ok(None),
            }
        }
        cache.held.push_front(sector);
        cache.held.truncate(cache.others);
        Ok(Some(answer.ended))
    }

    /// The time from the end of a read of one sector to that of some others requested at once, from the media; `None` if it
    /// cannot be measured.
    pub(super) async fn between(
        &mut self,
        before: u64,
        (first, count): (u64, u64),
        cache: &mut Cache,
    ) -> LatticeResult<Option<Nanos>> {
        if cache.is_there() {
            self.forget(cache).await;
        }
        let Some(before) = self.read(before).await else { return Ok(None) };
        let read = self.read_some(first, count).await;
        // The cache may hold some of them.
        if cache.is_there() {
            self.forget(cache).await;
        }
        Ok(read.filter(|read| read.took() > cache.hit).map(|read| read.ended.since(before.ended)))
    }

    /// Reads other sectors to evict the cached ones.
    async fn forget(&mut self, cache: &mut Cache) {
        cache.held.clear();
        for _ in 0..cache.others {
            // Steps of the golden section stay far from earlier ones for long.
            cache.scatter = cache.scatter.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let place = (u128::from(cache.scatter) * u128::from(self.sectors)) >> 64;
            self.read(place as u64).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::{self, ProbeTarget};
    use crate::{DiskInfo, Extraction, Outcome, Probe, ProbeCommand};
    use std::convert::Infallible;

    /// A disk that answers in 4 ms, from a cache or not, and records the probes.
    #[derive(Default)]
    struct Slow(Vec<Probe>);

    impl ProbeTarget for Slow {
        type Error = Infallible;

        fn info(&self) -> DiskInfo {
            DiskInfo {
                sectors: 100_000,
                sector_bytes: 512,
                physical_sectors: 1,
                depth: 1,
                may_write: false,
                translates: false,
            }
        }

        fn submit(&mut self, probe: Probe) -> Result<(), Infallible> {
            self.0.push(probe);
            Ok(())
        }

        fn wait(&mut self) -> Result<(Probe, Answer), Infallible> {
            let issued = Instant(4_000_000 * self.0.len() as u64);
            let ended = issued + Nanos(4_000_000);
            Ok((self.0[self.0.len() - 1], Answer { issued, ended, outcome: Outcome::Done }))
        }
    }

    /// The requested reads of some sectors, and the number of others.
    fn requested(sectors: &'static [u64], mut cache: Cache) -> (Vec<u64>, usize) {
        let mut disk = Slow::default();
        let mut extraction = Extraction::new(disk.info(), async move |disk: Disk| {
            let mut probes = 0;
            let mut reader = Reader { disk: &disk, sectors: 100_000, blocks: 1, probes: &mut probes };
            for sector in sectors {
                let read = reader.on_media(*sector, &mut cache).await;
                assert!(matches!(read, Ok(Some(_))), "{read:?}");
            }
        });
        drive::run(&mut extraction, &mut disk, |_, _, _| true).expect("it cannot fail");
        let reads = disk.0.iter().map(|probe| match probe.command {
            ProbeCommand::Read { lbn, .. } => lbn.0,
            other => panic!("{other:?} is no read"),
        });
        let (wanted, others): (Vec<u64>, Vec<u64>) = reads.partition(|lbn| sectors.contains(lbn));
        (wanted, others.len())
    }

    #[test]
    fn recent_sector_is_evicted_before_it_is_reread() {
        let cache = |others, is_slow| Cache { hit: Nanos(100_000), others, is_slow, ..Cache::default() };
        assert_eq!(requested(&[7, 9, 7, 7], cache(3, false)), (vec![7, 9, 7, 7], 6));
        assert_eq!(requested(&[7, 9, 11, 13, 7], cache(3, false)), (vec![7, 9, 11, 13, 7], 0));
        // A slow cache does not show what it read ahead.
        assert_eq!(requested(&[7, 9, 11], cache(3, true)), (vec![7, 9, 11], 9));
        assert_eq!(requested(&[7, 7, 7], Cache::default()), (vec![7, 7, 7], 0));
    }
}
