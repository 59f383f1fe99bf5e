//! The write cache: whether there is one, its size, when it is written to the media and in which order.
//!
//! The next read shows what the arm does while idle: a read of a block that is about to pass on the head's track is late if the
//! arm has left to write.

use super::bench::{Bench, Hits, Kind, Lead, TRACK_TURNS, TRIES, angle, doubled, halved, times, wrap};
use super::scene::Scene;
use super::{FindingConfidence, Findings};
use headstack_model::spec::{BusSpec, CacheSpec, WriteCache};
use headstack_model::{Instant, Lbn, Nanos};

/// The time of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushCost {
    /// Scattered writes in the cache.
    pub writes: u32,
    /// Time of the flush, the median of three.
    pub took: Nanos,
}

/// Maximum idle time, in ns, that is tested until a disk begins to write.
const LONGEST_IDLE: f64 = 2e9;
/// Maximum tested sectors in the write cache.
const MOST: u64 = 1 << 21;
/// Maximum scattered runs of a drive file.
const MOST_RUNS: u64 = 8192;
/// Maximum tested writes in it: those runs, and what is destaged meanwhile.
const MOST_WRITES: usize = 8600;
/// Turns by which a read is requested early: read-ahead may have moved the arm.
const EARLY: f64 = 0.35;
/// Idle time, in ns, in addition to twice the time of a write, below which the disk writes at once.
const AT_ONCE: f64 = 1e6;
/// Minimum idle time, in ns, that is tested.
const SHORTEST_IDLE: f64 = 200_000.0;
/// Idle time, in ns, that is tried first.
const FIRST_IDLE: f64 = 5e6;
/// Resolution of the idle time, in ns: half of the last digit that is reported.
const IDLE_RESOLUTION: f64 = 50_000.0;
/// Dirty sectors that are tried first.
const FIRST_START: i64 = 1024;
/// Turns within which a read ends at a whole turn.
const WHOLE_TURN: f64 = 0.1;
/// Tries of a read that does not end at a whole turn.
const LATE_TRIES: usize = 5;
/// Number of recent writes that show whether the cache is full.
const RECENT: usize = 24;
/// Minimum number of slow ones among them if the cache is full: one or two may only be late.
const SLOW: usize = 6;
/// Number of writes from the first slow one on.
const NEXT: usize = 8;
/// Minimum number of slow ones among them.
const NEXT_SLOW: usize = 3;
/// Pairs of writes whose phases show the disk's work after a write.
const PAIRS: usize = 15;
/// Share of a turn, at either end, that counts as noise and not as work after a write.
const NO_WORK: f64 = 0.01;
/// Number of writes to neighbouring tracks that show an order by positioning time, and the least that do.
const STAIRS: u32 = 16;
const LEAST_STAIRS: u32 = 4;
/// Turns from one of them to the next: more than a short seek, and much less than half a turn.
const STAIR: f64 = 0.3;
/// Maximum turns for each of them in an order by positioning time, which takes a step or less; an order by place takes the rest of a turn.
const BY_TIME: f64 = 0.5;
/// Maximum time of scattered writes in an order by place, as a share of that of single ones.
const BY_PLACE: f64 = 0.8;

/// Learns the part of `[cache]` that writes show; `hits` are those after a write.
pub(super) async fn learn(
    bench: &Bench,
    hits: Option<&Hits>,
    cache: &mut CacheSpec,
    bus: &mut BusSpec,
    findings: &mut Findings,
) -> Vec<FlushCost> {
    bench.disk().report_progress("write cache", 0.0);
    findings.add("cache.write_cache", FindingConfidence::Measured);
    let Some(buffered) = buffered(bench).await else {
        learn_dedicated(bench, hits, cache, findings).await;
        return Vec::new();
    };
    if buffered.sector > 0.0 {
        bus.write_us_per_sector = libm::round(buffered.sector) / 1e3;
        findings.add("bus.write_us_per_sector", FindingConfidence::Measured);
    }
    let parked = bench.fresh().first;
    let Some(lead) = bench.lead(Kind::Read, Kind::Read, parked, bench.unit()).await else {
        return Vec::new();
    };
    let writes = Writes { bench, buffered, parked, lead };
    let idle = writes.idle().await;
    let (count, blocked) = writes.until_full(bench.unit(), MOST_WRITES).await;
    bench.disk().report_progress("write cache", 0.3);
    let at_once = idle.is_some_and(|idle| idle < 2.0 * buffered.base + AT_ONCE);
    if at_once {
        cache.write_cache = WriteCache::Segment;
        cache.write_segments = (count as u32).clamp(1, cache.segments);
        findings.add("cache.write_segments", FindingConfidence::Measured);
        learn_dedicated(bench, hits, cache, findings).await;
        return writes.flushes(count).await;
    }
    cache.write_cache = WriteCache::Full;
    cache.destage_idle_ms = libm::round(idle.unwrap_or(LONGEST_IDLE) / 1e5) / 10.0;
    findings.add_if(idle.is_some(), "cache.destage_idle_ms", FindingConfidence::LowerBound);
    writes.learn_limits(cache, (count, blocked), findings).await;
    bench.disk().report_progress("write cache", 0.7);
    writes.learn_extra(cache, findings).await;
    cache.destage_order = writes.order(cache).await.to_string();
    findings.add("cache.destage_order", FindingConfidence::Measured);
    writes.flushes(cache.dirty_runs_max as usize).await
}

/// Time of writes into the cache, if they end before the platter could have taken them.
async fn buffered(bench: &Bench) -> Option<Hits> {
    let unit = bench.unit();
    let (small, tolerance) = steady_writes(bench, unit).await?;
    let mut buffered = Hits { base: small, sector: 0.0, tolerance };
    for sectors in [32, 100, 400].into_iter().filter(|sectors| *sectors > unit) {
        let Some((time, _)) = steady_writes(bench, sectors).await else { break };
        buffered.sector = ((time - small) / f64::from(sectors - unit)).max(0.0);
        buffered.base = small - buffered.sector * f64::from(unit);
    }
    Some(buffered)
}

async fn steady_writes(bench: &Bench, sectors: u32) -> Option<(f64, f64)> {
    let found = bench.steady(TRIES, async |step| {
        let lbn = bench.fresh().first;
        let flushed = bench.flush().await.ended;
        bench.write(lbn, sectors, flushed + bench.turns(1.0 + angle(step))).await
    });
    let found = found.await;
    bench.flush().await;
    found
}

/// Whether one segment is reserved for writes: then a write evicts none of those that reads fill.
async fn learn_dedicated(bench: &Bench, hits: Option<&Hits>, cache: &mut CacheSpec, findings: &mut Findings) {
    let Some(hits) = hits else { return };
    if cache.segments > 64 {
        return findings.add("cache.dedicated_write_segment", FindingConfidence::Default);
    }
    findings.add("cache.dedicated_write_segment", FindingConfidence::Measured);
    const ROUNDS: usize = 5;
    let unit = bench.unit();
    let kept = times(ROUNDS, async |round| {
        let places: Vec<Lbn> = (0..cache.segments).map(|_| bench.fresh().first).collect();
        for place in &places {
            // Enough time to read ahead.
            bench.read(*place, unit, bench.disk().now() + bench.turns(0.5)).await;
        }
        // A write gets no segment that read-ahead is filling.
        let tracks = f64::from(cache.read_ahead_max_sectors) / f64::from(bench.size());
        let at = bench.disk().now() + bench.turns(4.0 + TRACK_TURNS * tracks);
        bench.access(Kind::Write, bench.fresh().first, unit, at).await;
        let at = bench.disk().now() + bench.turns(angle(round));
        // The read-ahead of the oldest: the request itself may have been evicted from its segment.
        let answer = bench.read(places[0] + u64::from(unit) + 1, 1, at).await;
        hits.fits(&answer, 1)
    });
    if kept.await * 2 > ROUNDS {
        cache.dedicated_write_segment = true;
        cache.segments += 1;
    }
}

struct Writes<'a> {
    bench: &'a Bench,
    buffered: Hits,
    /// The track on which the arm waits, and the timing of a read served there at once.
    parked: Lbn,
    lead: Lead,
}

impl Writes<'_> {
    /// Whether a read of the parked blocks ends in time; else the arm has left. `None` if the answer is off by part of a turn.
    async fn is_parked(&self, (end, at): (Instant, Instant)) -> Option<bool> {
        let answer = self.bench.access(Kind::Read, self.parked, self.bench.unit(), at).await;
        let late = (answer.ended.0 as f64 - end.0 as f64) / self.bench.turn;
        (wrap(late).abs() < WHOLE_TURN).then_some(late < 0.5)
    }

    /// The end of a read of those blocks, requested slightly early, and the time of the request, not before `earliest`.
    fn served_after(&self, earliest: Instant) -> (Instant, Instant) {
        let before = self.lead.least + EARLY * self.bench.turn;
        let end = self.bench.upcoming(self.lead.phase, earliest + Nanos(before as u64 + 1));
        (end, end.saturating_sub(Nanos(before as u64)))
    }

    /// Moves the arm to its place, with nothing left to write.
    async fn park(&self) -> Instant {
        self.bench.flush().await;
        self.bench.access(Kind::Read, self.parked, self.bench.unit(), Instant::ZERO).await.ended
    }

    /// Whether the arm is still there after an idle time that follows a write elsewhere.
    async fn waits(&self, idle: f64) -> bool {
        for _ in 0..LATE_TRIES {
            let ready = self.park().await;
            let lbn = self.bench.far_from(self.parked).first;
            let read = self.served_after(ready + Nanos(idle as u64 + 1_000_000));
            self.bench.write(lbn, self.bench.unit(), read.1.saturating_sub(Nanos(idle as u64))).await;
            if let Some(is_parked) = self.is_parked(read).await {
                return is_parked;
            }
        }
        false
    }

    /// Idle time from a write until the disk writes it to the media: ns.
    async fn idle(&self) -> Option<f64> {
        // At least the time of a write.
        let (mut low, mut high) = (2.0 * self.buffered.base + SHORTEST_IDLE, FIRST_IDLE);
        if !self.waits(low).await {
            return Some(0.0);
        }
        while self.waits(high).await {
            (low, high) = (high, high * 2.0);
            if high > LONGEST_IDLE {
                return None;
            }
        }
        while high - low > IDLE_RESOLUTION {
            let middle = (low + high) / 2.0;
            if self.waits(middle).await { low = middle } else { high = middle }
        }
        Some((low + high) / 2.0)
    }

    /// The larger result of two calls of [`Writes::until_slow`], because a late answer may be taken for the first slow one.
    async fn until_full(&self, sectors: u32, most: usize) -> (usize, f64) {
        let (first, again) = (self.until_slow(sectors, most).await, self.until_slow(sectors, most).await);
        if first.0 < again.0 { again } else { first }
    }

    /// Number of scattered writes that the cache takes at once, and the time of each later one: ns, 0 if it took all.
    async fn until_slow(&self, sectors: u32, most: usize) -> (usize, f64) {
        let ready = self.park().await;
        let mut writes = Vec::new();
        while writes.len() < most {
            let answer = self.bench.write(self.bench.anywhere().first, sectors, Instant::ZERO).await;
            writes.push((answer.ended, !self.buffered.fits(&answer, sectors)));
            let recent = &writes[writes.len().saturating_sub(RECENT)..];
            let slow = recent.iter().filter(|(_, is_slow)| *is_slow).count();
            if slow >= SLOW {
                break;
            }
        }
        self.bench.flush().await;
        let from = writes.len().saturating_sub(RECENT);
        // A write that was late before the cache was full is followed by few slow ones.
        let is_full = |first: &usize| {
            let next = &writes[*first..writes.len().min(first + NEXT)];
            writes[*first].1 && next.iter().filter(|(_, is_slow)| *is_slow).count() >= NEXT_SLOW
        };
        let slow = || (from..writes.len()).find(|first| writes[*first].1);
        match (from..writes.len()).find(is_full).or_else(slow) {
            Some(count) if writes.len() < most => {
                let began = count.checked_sub(1).map_or(ready, |last| writes[last].0);
                let later = &writes[count..];
                let took = later[later.len() - 1].0 - began;
                (count, took.0 as f64 / later.len() as f64)
            }
            _ => (most, 0.0),
        }
    }

    /// Whether the arm is still there right after writes elsewhere.
    async fn waits_with(&self, sectors: u64) -> bool {
        for _ in 0..LATE_TRIES {
            self.park().await;
            let (mut lbn, mut left) = (self.bench.far_from(self.parked).first, sectors);
            let mut ended = self.bench.disk().now();
            while left > 0 {
                let part = left.min(1024);
                ended = self.bench.write(lbn, part as u32, Instant::ZERO).await.ended;
                (lbn, left) = (lbn + part, left - part);
            }
            if let Some(is_parked) = self.is_parked(self.served_after(ended)).await {
                return is_parked;
            }
        }
        false
    }

    /// Learns how much may be dirty, in sectors and in runs, and how much starts destaging.
    async fn learn_limits(&self, cache: &mut CacheSpec, runs: (usize, f64), findings: &mut Findings) {
        let unit = u64::from(self.bench.unit());
        let idle_turns = cache.destage_idle_ms * 1e6 / self.bench.turn;
        let start = if idle_turns > 2.0 { self.start(unit).await } else { None };
        findings.add_if(start.is_some(), "cache.dirty_start_sectors", FindingConfidence::Default);
        let runs_kept = self.kept(runs.0, unit, start, runs.1) / unit;
        // Parts large enough that few are destaged meanwhile, and small against the whole.
        let mut part = (start.unwrap_or(32768) / 256).clamp(unit, 2048) / unit * unit;
        let (taken, sure) = loop {
            let (count, blocked) = self.until_full(part as u32, 2 * MOST_WRITES).await;
            let kept = self.kept(count, part, start, blocked);
            match count {
                _ if count < 2 * MOST_WRITES && kept / part + 3 < runs_kept => {
                    break (kept, FindingConfidence::Measured);
                }
                _ if part < 8192 => part *= 4,
                _ => break (kept, FindingConfidence::LowerBound),
            }
        };
        cache.dirty_max_sectors = taken.max(1);
        findings.add("cache.dirty_max_sectors", sure);
        cache.dirty_start_sectors = start.unwrap_or(taken).min(taken);
        // If the sectors are the limit, the runs do not show.
        let is_seen = runs.0 < MOST_WRITES && (runs_kept * unit) as f64 * 1.03 < taken as f64;
        let least = if is_seen { 1 } else { 1024 };
        cache.dirty_runs_max = (runs_kept.min(MOST_RUNS) as u32).max(least);
        findings.add_if(is_seen, "cache.dirty_runs_max", FindingConfidence::UpperBound);
    }

    /// Dirty sectors when writes are first delayed: those taken, without those destaged since destaging began.
    fn kept(&self, count: usize, sectors: u64, start: Option<u64>, blocked: f64) -> u64 {
        let taken = count as u64 * sectors;
        let each = self.buffered.base + self.buffered.sector * sectors as f64;
        let since = taken.saturating_sub(start.unwrap_or(u64::MAX)) as f64 / sectors as f64 * each;
        let written = if blocked > 0.0 { libm::floor(since / blocked) as u64 } else { 0 };
        taken.saturating_sub(written * sectors)
    }

    /// Dirty sectors at which the disk destages though it is not idle.
    async fn start(&self, unit: u64) -> Option<u64> {
        let waits = async |sectors: i64| self.waits_with(sectors as u64).await;
        let bounds = doubled(unit as i64, FIRST_START, MOST as i64, waits).await?;
        Some(halved(bounds, unit as i64, waits).await.1 as u64)
    }

    /// Learns the disk's work after each write to the media, and for each flush. After a write where the head is, there is none.
    async fn learn_extra(&self, cache: &mut CacheSpec, findings: &mut Findings) {
        let (bench, unit, track) = (self.bench, self.bench.unit(), self.bench.fresh());
        let far = bench.far_from(track.first).first;
        let (mut through, mut near, mut away) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..PAIRS {
            through.push(bench.access(Kind::Write, track.first, unit, Instant::ZERO).await.ended);
            bench.write(track.first, unit, Instant::ZERO).await;
            near.push(bench.flush().await.ended);
            bench.access(Kind::Read, far, unit, Instant::ZERO).await;
            bench.write(track.first, unit, Instant::ZERO).await;
            away.push(bench.flush().await.ended);
        }
        let phases = [through, near, away].map(|ends| bench.phase_of(&ends));
        let [Some(through), Some(near), Some(away)] = phases else {
            findings.add("cache.flush_ms", FindingConfidence::Default);
            return findings.add("cache.destage_extra_ms", FindingConfidence::Default);
        };
        findings.add("cache.flush_ms", FindingConfidence::Measured);
        findings.add("cache.destage_extra_ms", FindingConfidence::Measured);
        let time_ms = |turns: f64| {
            let turns = turns.rem_euclid(1.0);
            let is_work = (NO_WORK..1.0 - NO_WORK).contains(&turns);
            if is_work { libm::round(turns * bench.turn / 1e4) / 100.0 } else { 0.0 }
        };
        cache.flush_ms = time_ms(near - through);
        cache.destage_extra_ms = time_ms(away - near);
    }

    /// The order of destaging: from the time of writes that an order by place takes in a bad order, and of many close together and far
    /// apart.
    async fn order(&self, cache: &CacheSpec) -> &'static str {
        let (bench, unit) = (self.bench, self.bench.unit());
        let count = (cache.dirty_runs_max / 2).clamp(1, 64);
        let each = |flush: Nanos| flush.0 as f64 / f64::from(count) - cache.destage_extra_ms * 1e6;
        if self.is_by_time(count.min(STAIRS)).await {
            return "sptf";
        }
        let mut through = Vec::new();
        for _ in 0..TRIES {
            through.push(
                bench.access(Kind::Write, bench.anywhere().first, unit, Instant::ZERO).await.took().0 as f64,
            );
        }
        let together = self.flush_of(count).await;
        let apart = through.iter().sum::<f64>() / through.len() as f64;
        if each(together) < BY_PLACE * apart { "c-look" } else { "fcfs" }
    }

    /// Whether the disk destages by positioning time. From track to track, the writes lie a step further along the track, and then a step
    /// further back: in an order by place or arrival, one of the two takes most of a turn for each write.
    async fn is_by_time(&self, count: u32) -> bool {
        if count < LEAST_STAIRS {
            return false;
        }
        let most = 1.0 + BY_TIME * f64::from(count - 1);
        for step in [STAIR, -STAIR] {
            if self.flush_of_stairs(count, step).await > most {
                return false;
            }
        }
        true
    }

    /// The time of a flush of writes to neighbouring tracks, each a number of turns behind the one before it: turns.
    async fn flush_of_stairs(&self, count: u32, step: f64) -> f64 {
        let (bench, scene) = (self.bench, Scene { bench: self.bench, committed: 1 });
        let first = bench.fresh();
        let mut places = Vec::new();
        for index in 0..count {
            if let Some(track) = bench.neighbour_track(first, i64::from(index)) {
                places.push(scene.after(first, track, (step * f64::from(index)).rem_euclid(1.0)).await);
            }
        }
        self.park().await;
        for place in places {
            bench.write(place, bench.unit(), Instant::ZERO).await;
        }
        bench.flush().await.took().0 as f64 / bench.turn
    }

    async fn flush_of(&self, writes: u32) -> Nanos {
        self.park().await;
        for _ in 0..writes {
            self.bench.write(self.bench.anywhere().first, self.bench.unit(), Instant::ZERO).await;
        }
        self.bench.flush().await.took()
    }

    /// The time of a flush by the number of scattered writes in the cache.
    async fn flushes(&self, most: usize) -> Vec<FlushCost> {
        let mut costs = Vec::new();
        for writes in [0u32, 1, 4, 16, 64, 256].into_iter().filter(|writes| *writes as usize <= most) {
            let mut took = [0; 3].map(|_| Nanos::ZERO);
            for each in &mut took {
                *each = self.flush_of(writes).await;
            }
            took.sort_unstable();
            costs.push(FlushCost { writes, took: took[1] });
        }
        costs
    }
}
