//! Command overheads, the bus, and access on arrival.
//!
//! A constant shift of all media accesses against the host's clock cannot be observed: the time of a read before the arm moves
//! and that after the last byte show only as their sum. A learned drive has all of it before, and after it only the difference
//! between reads and writes of the same block. Such a drive answers at the same times.

use super::bench::{Bench, Hits, Kind, Lead, TRIES, angle, mid_mean, wrap};
use super::{FindingConfidence, Findings};
use headstack_model::spec::{BusSpec, OverheadSpec, ZeroLatency};
use headstack_model::{Instant, Lbn, Nanos};

/// Maximum difference due to the clock: ns. One and a half deviations of a usual host's answers, whose means are compared.
const JITTER: f64 = 12_000.0;
/// [`JITTER`]s by which two means differ for certain.
const MEANS_DIFFER: f64 = 2.0;
/// [`JITTER`]s by which two results of a bisection differ for certain.
const LEADS_DIFFER: f64 = 4.0;
/// Least ratio of a sector's time on the bus to its time under the head that counts as a slower bus.
const SLOWER_BUS: f64 = 1.02;
/// Minimum share of a transfer that counts as waited for.
const LEAST_WAIT: f64 = 0.05;
/// Sectors of a long read, which gives the time of a sector.
const LONG_READ: u32 = 48;
/// Sectors of the read hits that give the time of a sector on the bus.
const HIT_SIZES: [u32; 4] = [32, 100, 500, 2000];
/// Sectors, in units, of writes that are shorter than the data that must arrive first.
const SHORT_WRITES: [u32; 3] = [4, 12, 24];
/// Sector times on the bus by which such a write takes longer.
const LATER_SECTORS: f64 = 0.7;
/// Numbers of hits that arrive together.
const FEW_HITS: usize = 4;
const MANY_HITS: usize = 16;
/// Number of consecutive reads.
const SEQUENCE: usize = 15;
/// Number of reads of whole tracks; the latest two are ignored as late.
const TRACK_READS: usize = 16;
/// Number of angles at which they begin.
const TRACK_ANGLES: usize = 8;
/// Turns by which the responses to whole tracks differ if reads wait for the first sector: up to 7/8, against the noise of a seek.
const WAITS: f64 = 0.35;

/// Times of read hits. `None` without a cache.
pub(super) async fn hits(bench: &Bench) -> Option<Hits> {
    let unit = bench.unit();
    let is_ahead = bench.behind(unit).await;
    let (small, tolerance) = match is_ahead {
        Some(found) => found,
        None => bench.again(bench.fresh().first, unit).await?,
    };
    let mut hits = Hits { base: small, sector: 0.0, tolerance };
    for sectors in HIT_SIZES.into_iter().filter(|sectors| *sectors > unit) {
        let found = match is_ahead {
            Some(_) => bench.behind(sectors).await,
            None => bench.again(bench.fresh().first, sectors).await,
        };
        let Some((time, _)) = found else { break };
        hits.sector = ((time - small) / f64::from(sectors - unit)).max(0.0);
        hits.base = small - hits.sector * f64::from(unit);
    }
    Some(hits)
}

/// Learns `[overhead]` and `[bus]`, and the wait of a write on the head's track beyond its overhead.
pub(super) async fn learn(
    bench: &Bench,
    hits: Option<&Hits>,
    findings: &mut Findings,
) -> Option<(OverheadSpec, BusSpec, Nanos)> {
    let (track, unit) = (bench.fresh(), bench.unit());
    let lbn = track.first;
    let sector = bench.turn / f64::from(track.sectors);
    let read = bench.lead(Kind::Read, Kind::Read, lbn, unit).await?;
    let many = LONG_READ.clamp(unit, (track.sectors / 2).max(unit)) / unit * unit;
    let wide = bench.lead(Kind::Read, Kind::Read, lbn, many).await?;
    let mut bus = BusSpec::default();
    let way = Way::learn(hits, sector, unit, many, wide.least - read.least, findings);
    bus.read_us_per_sector = us(way.bus);
    bus.write_us_per_sector = bus.read_us_per_sector;
    bus.buffer_full_ratio = way.ratio;
    let mut overhead = OverheadSpec::default();
    let mut after_write = None;
    let mut writes = None;
    if bench.disk().info().may_write {
        after_write = bench.lead(Kind::Write, Kind::Read, lbn, unit).await;
        writes = Writes::learn(bench, lbn, many, sector, way.bus, findings).await;
    }
    // How much later a write ends than a read of the same blocks, beyond what the bus explains.
    let apart = writes.as_ref().map_or(0.0, |writes| {
        wrap(writes.lead.phase - read.phase) * bench.turn + way.time(unit) - f64::from(unit) * sector
    });
    let (after_read, of_write) = if apart < 0.0 { (-apart, 0.0) } else { (0.0, apart) };
    let miss = |lead: &Lead| ms(lead.least - way.time(unit) - after_read);
    overhead.read_completion_ms = ms(after_read);
    overhead.write_completion_ms = ms(of_write);
    overhead.after_read.read_miss_ms = miss(&read);
    overhead.after_write.read_miss_ms = miss(after_write.as_ref().unwrap_or(&read));
    if let Some(writes) = &writes {
        (bus.write_us_per_sector, bus.write_start_sectors) = (us(writes.bus), writes.start);
        bus.write_seek_min_ms = ms(writes.seek);
        let before = |lead: &Lead| {
            ms(lead.least - f64::from(unit) * sector - of_write - writes.arrival(unit).max(writes.seek))
        };
        overhead.after_read.write_ms = before(&writes.lead);
        overhead.after_write.write_ms = before(writes.after_write.as_ref().unwrap_or(&writes.lead));
    } else {
        overhead.after_read.write_ms = overhead.after_read.read_miss_ms;
        overhead.after_write.write_ms = overhead.after_write.read_miss_ms;
        findings.add("overhead.after_read.write_ms", FindingConfidence::Default);
    }
    hit_overheads(bench, hits, after_read, &mut overhead, findings).await;
    findings.add("overhead.after_read.read_miss_ms", FindingConfidence::Measured);
    let write_wait = writes.map_or(0.0, |writes| writes.arrival(unit).max(writes.seek));
    Some((overhead, bus, Nanos(write_wait as u64)))
}

/// The path of a read's data from the media to the host.
#[derive(Clone, Copy)]
struct Way {
    /// Time of a sector under the head and on the bus: ns.
    sector: f64,
    bus: f64,
    /// Share of the data that is waited for.
    ratio: f64,
}

impl Way {
    /// `longer` is the extra time of reading `many` sectors over reading `unit`.
    fn learn(
        hits: Option<&Hits>,
        sector: f64,
        unit: u32,
        many: u32,
        longer: f64,
        findings: &mut Findings,
    ) -> Way {
        let slope = longer / f64::from((many - unit).max(1));
        let Some(hits) = hits else {
            // Without a cache the bus shows only if it is slower than the media.
            let is_slow = slope > SLOWER_BUS * sector;
            findings.add_if(is_slow, "bus.read_us_per_sector", FindingConfidence::Default);
            return Way { sector, bus: if is_slow { slope } else { 0.0 }, ratio: 0.0 };
        };
        findings.add("bus.read_us_per_sector", FindingConfidence::Measured);
        let beyond = longer - f64::from(many - unit) * sector.max(hits.sector);
        let is_seen = beyond > LEADS_DIFFER * JITTER && beyond > LEAST_WAIT * longer;
        findings.add_if(is_seen, "bus.buffer_full_ratio", FindingConfidence::UpperBound);
        // If the bus is faster than the media, the ratio has no effect.
        let mut way = Way { sector, bus: hits.sector, ratio: 0.0 };
        if is_seen {
            way.ratio = way.fitting(unit, many, longer);
        }
        way
    }

    /// The ratio that explains the extra time of `many` sectors over `unit`: the roundest of those that fit equally well.
    fn fitting(&self, unit: u32, many: u32, longer: f64) -> f64 {
        let off = |hundredths: u32| {
            let way = Way { ratio: f64::from(hundredths) / 100.0, ..*self };
            (way.time(many) - way.time(unit) - longer).abs()
        };
        let least = (0..=100).map(off).fold(f64::MAX, f64::min);
        let fits = |step: u32| (0..=100).step_by(step as usize).find(|ratio| off(*ratio) < least + JITTER);
        let ratio = [25, 10, 5, 1].into_iter().find_map(fits);
        f64::from(ratio.unwrap_or(0)) / 100.0
    }

    /// Time from the first sector under the head to the last at the host: ns.
    fn time(&self, sectors: u32) -> f64 {
        let all = f64::from(sectors);
        let waited = libm::floor(all * self.ratio).clamp(1.0, all);
        let in_step = (self.sector + all * self.bus).max(all * self.sector + self.bus);
        in_step.max(waited * self.sector + all * self.bus)
    }
}

/// Results from writes that end on the media.
struct Writes {
    lead: Lead,
    after_write: Option<Lead>,
    /// Time of a sector on the bus, and under the head: ns.
    bus: f64,
    media: f64,
    /// Sectors that must arrive before the first is written.
    start: u32,
    /// Least time from the command's overhead to the first sector: ns.
    seek: f64,
}

impl Writes {
    async fn learn(
        bench: &Bench,
        lbn: Lbn,
        many: u32,
        media: f64,
        read_bus: f64,
        findings: &mut Findings,
    ) -> Option<Writes> {
        let unit = bench.unit();
        let lead = bench.lead(Kind::Read, Kind::Write, lbn, unit).await?;
        let after_write = bench.lead(Kind::Write, Kind::Write, lbn, unit).await;
        let mut writes = Writes { lead, after_write, bus: read_bus, media, start: 1, seek: 0.0 };
        findings.add("bus.write_us_per_sector", FindingConfidence::Default);
        let less = (many * 3 / 4 / unit * unit).max(unit);
        if less == many {
            return Some(writes);
        }
        let Some(wide) = bench.lead(Kind::Read, Kind::Write, lbn, many).await else { return Some(writes) };
        let Some(short) = bench.lead(Kind::Read, Kind::Write, lbn, less).await else { return Some(writes) };
        let waits = wide.least - short.least - f64::from(many - less) * media;
        if waits < LEADS_DIFFER * JITTER {
            return Some(writes);
        }
        // The data arrive more slowly than the media write them.
        writes.bus = media + waits / f64::from(many - less);
        findings.add("bus.write_us_per_sector", FindingConfidence::Measured);
        let base = wide.least - f64::from(many) * media - writes.arrival(many);
        writes.find_start(bench, lbn, many, base).await;
        let first = lead.least - f64::from(unit) * media - base;
        if first > writes.arrival(unit) + LEADS_DIFFER * JITTER {
            writes.seek = first;
            findings.add("bus.write_seek_min_ms", FindingConfidence::Measured);
        }
        Some(writes)
    }

    /// Determines how many sectors must arrive first: a short write then waits longer than its own transfer explains.
    async fn find_start(&mut self, bench: &Bench, lbn: Lbn, many: u32, base: f64) {
        let unit = bench.unit();
        for few in SHORT_WRITES.into_iter().map(|units| units * unit).filter(|few| *few < many) {
            let Some(short) = bench.lead(Kind::Read, Kind::Write, lbn, few).await else { return };
            let arrival = short.least - base - f64::from(few) * self.media;
            let whole = libm::round(arrival / self.bus) as u32;
            if arrival > self.arrival(few) + LATER_SECTORS * self.bus {
                self.start = whole.clamp(1, few);
            }
        }
    }

    /// Time from the start of the transfer to when the media may be written: ns.
    fn arrival(&self, sectors: u32) -> f64 {
        let all = f64::from(sectors);
        let least = f64::from(self.start.min(sectors)) * self.bus;
        least.max(all * self.bus - (all - 1.0) * self.media)
    }
}

/// The overheads of read hits: after a read, after a write, in sequence, with others in the queue.
async fn hit_overheads(
    bench: &Bench,
    hits: Option<&Hits>,
    after_read: f64,
    overhead: &mut OverheadSpec,
    findings: &mut Findings,
) {
    let Some(hits) = hits else {
        for set in [&mut overhead.after_read, &mut overhead.after_write] {
            set.read_hit_ms = set.read_miss_ms;
        }
        return findings.add("overhead.after_read.read_hit_ms", FindingConfidence::Default);
    };
    let hit = |base: f64| ms(base - after_read);
    overhead.after_read.read_hit_ms = hit(hits.base);
    findings.add("overhead.after_read.read_hit_ms", FindingConfidence::Measured);
    let after_write = if bench.disk().info().may_write {
        match hit_after_write(bench, hits).await {
            Some(base) => Some(base),
            None => hit_on_written(bench, hits, bench.turns(8.0)).await,
        }
    } else {
        None
    };
    findings.add_if(after_write.is_some(), "overhead.after_write.read_hit_ms", FindingConfidence::Default);
    overhead.after_write.read_hit_ms = hit(after_write.unwrap_or(hits.base));
    if let Some(base) = hit_in_sequence(bench, hits).await
        && (base - hits.base).abs() > MEANS_DIFFER * JITTER
    {
        overhead.sequential_ms = Some(hit(base));
        findings.add("overhead.sequential_ms", FindingConfidence::Measured);
    }
    let overlap = Overlap::learn(bench, hits).await;
    findings.add_if(overlap.is_some(), "overhead.first_ms", FindingConfidence::Default);
    let is_pipelined = matches!(overlap, Some(Overlap::Pipelined(_)));
    findings.add_if(is_pipelined, "overhead.pipelined_ms", FindingConfidence::Default);
    match overlap {
        Some(Overlap::First(first)) => take_first(overhead, first),
        Some(Overlap::Pipelined(each)) => overhead.pipelined_ms = Some(ms(each)),
        Some(Overlap::Same) | None => {}
    }
}

/// Takes the extra time of a command that finds no other, in ns, out of the overheads, all of which contain it.
fn take_first(overhead: &mut OverheadSpec, first: f64) {
    overhead.first_ms = ms(first);
    let less = |time: f64| (time - ms(first)).max(0.0);
    for set in [&mut overhead.after_read, &mut overhead.after_write] {
        for time in [&mut set.read_hit_ms, &mut set.read_miss_ms, &mut set.write_ms] {
            *time = less(*time);
        }
    }
    overhead.sequential_ms = overhead.sequential_ms.map(less);
}

/// The base of a hit that follows a write elsewhere, if the write leaves it in the cache: ns.
async fn hit_after_write(bench: &Bench, hits: &Hits) -> Option<f64> {
    let (unit, other) = (bench.unit(), bench.fresh().first);
    let found = bench.steady(TRIES, async |step| {
        let lbn = bench.fresh().first;
        let read = bench.read(lbn, unit, Instant::ZERO).await.ended;
        let end = bench.access(Kind::Write, other, unit, read + bench.turns(0.3)).await.ended;
        // The read-ahead is cached even if the request itself is not.
        bench.read(lbn + u64::from(unit) + 1, unit, end + bench.turns(angle(step))).await
    });
    Some(found.await?.0 - hits.sector * f64::from(unit))
}

/// The base of a hit on data just written, if they are cached: ns.
///
/// Before each write the arm rests: if read-ahead has the only segment, a write gets none.
pub(super) async fn hit_on_written(bench: &Bench, hits: &Hits, rest: Nanos) -> Option<f64> {
    let unit = bench.unit();
    let found = bench.steady(TRIES, async |step| {
        let lbn = bench.fresh().first;
        let end = bench.access(Kind::Write, lbn, unit, bench.disk().now() + rest).await.ended;
        bench.read(lbn, unit, end + bench.turns(angle(step))).await
    });
    Some(found.await?.0 - hits.sector * f64::from(unit))
}

/// The base of a hit that begins where the previous one ended: ns.
async fn hit_in_sequence(bench: &Bench, hits: &Hits) -> Option<f64> {
    let (unit, lbn) = (bench.unit(), bench.fresh().first);
    bench.read(lbn, unit, Instant::ZERO).await;
    let found = bench.steady(SEQUENCE, async |step| {
        let part = lbn + (step as u64 + 1) * u64::from(unit);
        bench.read(part, unit, bench.disk().now() + bench.turns(angle(step + 1))).await
    });
    Some(found.await?.0 - hits.sector * f64::from(unit))
}

/// How a hit among others differs from one alone.
enum Overlap {
    /// Not at all.
    Same,
    /// A hit that finds no other command takes longer by this time: ns.
    First(f64),
    /// The electronics work on several at a time, and one ends each of these times: ns.
    Pipelined(f64),
}

impl Overlap {
    /// `None` if too few commands can be outstanding.
    ///
    /// Of several that arrive together the first is alone when it arrives, and the last when the others are done. So both take the extra
    /// time of a first one, and in a pipeline only one of them takes the whole overhead.
    async fn learn(bench: &Bench, hits: &Hits) -> Option<Overlap> {
        let depth = bench.disk().info().depth;
        if depth < FEW_HITS {
            return None;
        }
        let each = hits.base + hits.sector * f64::from(bench.unit());
        let few = burst(bench, FEW_HITS).await;
        let first = (FEW_HITS as f64 * each - few) / (FEW_HITS - 2) as f64;
        if first < MEANS_DIFFER * JITTER {
            return Some(Overlap::Same);
        }
        if depth < MANY_HITS {
            return Some(Overlap::First(first));
        }
        let more = (burst(bench, MANY_HITS).await - few) / (MANY_HITS - FEW_HITS) as f64;
        let whole = (few - FEW_HITS as f64 * more) / (each - more);
        Some(if whole < 1.5 { Overlap::Pipelined(more) } else { Overlap::First(first) })
    }
}

/// The time of a number of hits that arrive together: ns.
async fn burst(bench: &Bench, count: usize) -> f64 {
    let (unit, lbn) = (bench.unit(), bench.fresh().first);
    bench.read(lbn, unit, Instant::ZERO).await;
    let mut took = Vec::new();
    for _ in 0..TRIES {
        let at = bench.disk().now() + bench.turns(0.3);
        let command = crate::ProbeCommand::Read { lbn, sectors: unit, from_media: false };
        let mut last = Nanos::ZERO;
        let sent: Vec<_> = (0..count).map(|_| bench.send(command, at)).collect();
        for ticket in sent {
            last = last.max(bench.disk().answer(ticket).await.took());
        }
        took.push(last.0 as f64);
    }
    mid_mean(&mut took)
}

/// Whether an access begins wherever the head arrives: then a whole track takes equally long from all angles, else up to a turn longer.
pub(super) async fn zero_latency(bench: &Bench, kind: Kind) -> ZeroLatency {
    if spread(bench, kind, 1).await > WAITS {
        return ZeroLatency::None;
    }
    if spread(bench, kind, 2).await > WAITS { ZeroLatency::WithinTrack } else { ZeroLatency::PerFragment }
}

/// Difference of the responses to whole tracks between angles, in turns.
async fn spread(bench: &Bench, kind: Kind, tracks: u32) -> f64 {
    let (track, away) = (bench.fresh(), bench.fresh().first);
    let mut took = Vec::new();
    for step in 0..TRACK_READS {
        let ready = bench.access(Kind::Read, away, bench.unit(), Instant::ZERO).await.ended;
        let at = bench.upcoming((step % TRACK_ANGLES) as f64 / TRACK_ANGLES as f64, ready);
        took.push(bench.access(kind, track.first, tracks * track.sectors, at).await.took().0 as f64);
    }
    took.sort_by(f64::total_cmp);
    (took[TRACK_READS - 3] - took[0]) / bench.turn
}

fn us(ns: f64) -> f64 {
    libm::round(ns.max(0.0)) / 1e3
}

fn ms(ns: f64) -> f64 {
    libm::round(ns.max(0.0) / 1e2) / 1e4
}
