//! The cache for reads: the length of read-ahead, the size and number of segments, and their replacement.
//!
//! Each test reads at a new place and then tests whether another block comes from the cache. A block that is not cached waits for
//! the media, and by chance is sometimes as quick as a hit; so two places have to agree.

use super::bench::{Bench, Hits, Kind, TRACK_TURNS, doubled, halved, times};
use super::overhead;
use super::{FindingConfidence, Findings};
use headstack_model::spec::{CacheSpec, ReadAhead, Replacement, Segmentation};
use headstack_model::{Instant, Lbn, Nanos};

/// Maximum tested sectors of a segment or of read-ahead.
const MOST: u64 = 1 << 17;
/// Tracks near the end of which read-ahead is tested, because some are the last of their cylinder.
const TRACKS: usize = 16;
/// Maximum number of segments in the tests.
const MOST_SEGMENTS: usize = 4096;
/// Maximum number of segments for the test of replacement: each of its rounds reads them all.
const MOST_REPLACED: usize = 64;
/// Sectors of read-ahead tried first.
const FIRST_AHEAD: i64 = 8;
/// Sectors of read-ahead tried first if it evicts its own beginning.
const FIRST_SMALL: i64 = 16;
/// Each step of that test adds the distance divided by this, so that one of the steps falls into the segment.
const SMALL_STEP: i64 = 32;
/// Sectors of the shortest and the longest request whose cached part shows a segment.
const REQUESTS: (u32, u32) = (64, 8192);
/// Number of consecutive missing places from which on all older ones are missing.
const MISSED: usize = 3;
/// Rounds of the test whether a reused place outlives others.
const SURVIVALS: usize = 15;
/// Maximum rounds in which a reused place outlives others by chance.
const BY_CHANCE: usize = 2;
/// Minimum rounds in which a reused place outlives others by rule.
const BY_RULE: usize = 12;
/// Number of tracks on which blocks before a request are tested.
const ARRIVALS: usize = 9;
/// Minimum number of tracks on which they are cached if the disk keeps them.
const ARRIVED: usize = 6;
/// Maximum turns for reading a whole track, with a seek.
const TRACK_READ: f64 = 4.0;
/// Share of a turn from which on a read that continues another has missed its sector.
const LATE_TURNS: f64 = 0.7;

/// What is read before a test, and where on its track.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// First sector; if negative, counted from the end of the track.
    from: i64,
    sectors: u32,
}

/// When the test is done.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// After the read-ahead is complete.
    Later,
    /// At once, with another read in between.
    CutOff,
    /// Before much has been read ahead.
    Soon,
    /// Later; a second request of the same size continued the first.
    InSequence,
    /// Later; the read-ahead was cut off, and the request was repeated when the arm rested.
    ReadAgain,
}

/// Learns the part of `[cache]` that reads show.
pub(super) async fn learn(bench: &Bench, hits: Option<&Hits>, findings: &mut Findings) -> CacheSpec {
    let mut spec = CacheSpec { almost_hits: true, ..CacheSpec::default() };
    let Some(hits) = hits else {
        spec.enabled = false;
        findings.add("cache.enabled", FindingConfidence::Measured);
        return spec;
    };
    findings.add("cache.enabled", FindingConfidence::Measured);
    let mut reads = Reads { bench, hits: *hits, ahead: 0 };
    bench.disk().report_progress("cache", 0.0);
    reads.learn_read_ahead(&mut spec, findings).await;
    reads.ahead = spec.read_ahead_max_sectors;
    bench.disk().report_progress("cache", 0.5);
    let (segments, sure) = reads.segments().await;
    spec.segments = segments as u32;
    findings.add("cache.segments", sure);
    reads.learn_segment(&mut spec, findings).await;
    bench.disk().report_progress("cache", 0.8);
    spec.replacement = reads.replacement(segments, findings).await;
    reads.learn_arrival(&mut spec, findings).await;
    reads.learn_habits(&mut spec, findings).await;
    spec
}

struct Reads<'a> {
    bench: &'a Bench,
    hits: Hits,
    /// Maximum sectors of read-ahead, once known.
    ahead: u32,
}

impl Reads<'_> {
    fn is_hit(&self, answer: &crate::Answer, sectors: u32) -> bool {
        self.hits.fits(answer, sectors)
    }

    /// Whether one block is in the cache now.
    async fn holds(&self, lbn: Lbn) -> bool {
        self.holds_at(lbn, Instant::ZERO).await
    }

    async fn holds_at(&self, lbn: Lbn, at: Instant) -> bool {
        self.is_hit(&self.bench.read(lbn, 1, at).await, 1)
    }

    /// Reads at a new place and tests whether the block `distance` beyond the end (or, if negative, before it) is cached.
    async fn reaches_once(&self, place: Place, distance: i64, when: When) -> bool {
        let bench = self.bench;
        let track = bench.fresh();
        let from = if place.from < 0 { i64::from(track.sectors) + place.from } else { place.from };
        let lbn = Lbn(track.first.0 + from.max(0) as u64);
        bench.read(lbn, place.sectors, Instant::ZERO).await;
        let mut end = lbn.0 as i64 + i64::from(place.sectors);
        if when == When::InSequence {
            bench.read(Lbn(end as u64), place.sectors, Instant::ZERO).await;
            end += i64::from(place.sectors);
        }
        if matches!(when, When::CutOff | When::ReadAgain) {
            let far = bench.fresh().first;
            bench.access(Kind::Read, far, bench.unit(), Instant::ZERO).await;
        }
        if when == When::ReadAgain {
            // Not before the other read's own read-ahead is complete.
            let at = bench.disk().now() + self.reading(f64::from(self.ahead));
            bench.read(lbn, place.sectors, at).await;
        }
        let target = end + distance;
        // At another angle each time, because at one angle an uncached block is as quick as a cached one.
        let angle = bench.next_angle();
        let wait = match when {
            When::CutOff => Nanos::ZERO,
            When::Soon => bench.turns(0.1 + angle / 2.0),
            _ => self.reading((distance.max(0) as f64).max(f64::from(self.ahead))) + bench.turns(angle),
        };
        self.holds_at(Lbn(target as u64), bench.disk().now() + wait).await
    }

    /// An upper bound of the time for reading sectors.
    fn reading(&self, sectors: f64) -> Nanos {
        // Skews and switches make tracks take longer than a turn each.
        self.bench.turns(TRACK_TURNS * sectors / f64::from(self.bench.size()) + TRACK_READ)
    }

    async fn reaches(&self, place: Place, distance: i64, when: When) -> bool {
        let (one, other) =
            (self.reaches_once(place, distance, when).await, self.reaches_once(place, distance, when).await);
        if one == other { one } else { self.reaches_once(place, distance, when).await }
    }

    /// Number of sectors behind a request that get into the cache.
    async fn ahead(&self, place: Place, when: When) -> u64 {
        if !self.reaches(place, 0, when).await {
            return 0;
        }
        let reaches = async |distance| self.reaches(place, distance, when).await;
        match doubled(0, FIRST_AHEAD, MOST as i64, reaches).await {
            Some(bounds) => halved(bounds, 1, reaches).await.1 as u64,
            None => MOST,
        }
    }

    /// The length of read-ahead if it evicts its own beginning from the segment.
    async fn ahead_of_small_segments(&self) -> u32 {
        let place = Place { from: 0, sectors: self.bench.unit() };
        if !self.reaches(place, 0, When::Soon).await {
            return 0;
        }
        let mut high = FIRST_SMALL;
        // In steps of which one falls into the segment, wherever that has moved.
        while !self.reaches(place, high, When::Later).await {
            high += high / SMALL_STEP + 1;
            if high as u64 > MOST {
                return 0;
            }
        }
        let mut low = high;
        while self.reaches(place, high, When::Later).await {
            (low, high) = (high, high + high / SMALL_STEP + 1);
        }
        halved((low, high), 1, async |distance| self.reaches(place, distance, When::Later).await).await.1
            as u32
    }

    async fn learn_read_ahead(&self, spec: &mut CacheSpec, findings: &mut Findings) {
        let unit = self.bench.unit();
        let sectors = i64::from(self.bench.size());
        let left = 4 * i64::from(unit);
        let whole = self.ahead(Place { from: 0, sectors: unit }, When::Later).await;
        findings.add("cache.read_ahead", FindingConfidence::Measured);
        if whole == 0 {
            spec.read_ahead_max_sectors = self.ahead_of_small_segments().await;
            if spec.read_ahead_max_sectors > 0 {
                spec.read_ahead = ReadAhead::Segment;
            }
            return;
        }
        let near_end = Place { from: -left - i64::from(unit), sectors: unit };
        let (mut beyond, mut as_far) = (0, 0);
        for _ in 0..TRACKS {
            beyond += usize::from(self.reaches_once(near_end, left, When::Later).await);
            as_far += usize::from(self.reaches_once(near_end, whole as i64 - 1, When::Later).await);
        }
        let at_end = Place { from: -i64::from(unit), sectors: unit };
        let next = self.reaches(at_end, 0, When::Later).await;
        let two_at_end = Place { from: -2 * i64::from(unit), sectors: unit };
        if !next && self.reaches(two_at_end, 0, When::InSequence).await {
            spec.read_ahead = ReadAhead::Sequence;
            let place = Place { from: 0, sectors: unit };
            spec.read_ahead_max_sectors = self.ahead(place, When::InSequence).await as u32;
            findings.add("cache.read_ahead_max_sectors", FindingConfidence::Measured);
            return;
        }
        let of_track = (sectors - i64::from(unit)) as u64;
        let (ends_with_track, reaches_all) = (beyond * 4 < TRACKS, as_far * 4 >= TRACKS * 3);
        (spec.read_ahead, spec.read_ahead_max_sectors) = match (ends_with_track, next) {
            (true, true) => (ReadAhead::Stream, whole as u32),
            // A limit that a whole track hides is no limit.
            (true, false) if whole >= of_track => (ReadAhead::Track, self.bench.size()),
            (true, false) => (ReadAhead::Track, whole as u32),
            (false, _) if reaches_all => (ReadAhead::Segment, whole as u32),
            // Some tracks are nearer to the end of their cylinder.
            (false, _) => (ReadAhead::Cylinder, MOST as u32),
        };
        let is_whole = u64::from(spec.read_ahead_max_sectors) > whole;
        let sure = if is_whole { FindingConfidence::LowerBound } else { FindingConfidence::Measured };
        findings.add("cache.read_ahead_max_sectors", sure);
    }

    /// Learns the size of a segment: the cached part of a long request, and its read-ahead.
    async fn learn_segment(&self, spec: &mut CacheSpec, findings: &mut Findings) {
        findings.add("cache.segment_sectors", FindingConfidence::Measured);
        let ahead = Place { from: 0, sectors: self.bench.unit() };
        if spec.read_ahead == ReadAhead::Segment && !self.reaches(ahead, 0, When::Later).await {
            // Read-ahead evicts its own beginning: segments have shrunk below their maximum.
            let last = i64::from(spec.read_ahead_max_sectors) - 1;
            let held = self.last_held(ahead, -last, last + 1).await;
            return self.adapts(spec, (last + 1 + held) as u64, findings);
        }
        let mut sectors = REQUESTS.0;
        let (place, kept) = loop {
            let place = Place { from: 0, sectors };
            let all = i64::from(sectors);
            if !self.reaches(place, -all, When::Later).await {
                break (place, self.last_held(place, 0, all).await);
            }
            if sectors >= REQUESTS.1 {
                findings.add("cache.segment_sectors", FindingConfidence::LowerBound);
                break (place, all);
            }
            sectors *= 4;
        };
        let segment = kept as u32 + self.ahead(place, When::Later).await as u32;
        let bounded = spec.read_ahead != ReadAhead::Cylinder;
        spec.segment_sectors = segment.max(if bounded { spec.read_ahead_max_sectors } else { 1 });
        spec.read_ahead_max_sectors = spec.read_ahead_max_sectors.min(spec.segment_sectors);
    }

    /// The greatest cached distance before the end of a request, where `low` is cached and `high` is not.
    async fn last_held(&self, place: Place, low: i64, high: i64) -> i64 {
        halved((low, high), 1, async |distance| self.reaches(place, -distance, When::Later).await).await.0
    }

    /// Describes a cache with segments of at most `small` sectors.
    fn adapts(&self, spec: &mut CacheSpec, small: u64, findings: &mut Findings) {
        let all = u64::from(spec.segments) * small;
        let large = u64::from(spec.read_ahead_max_sectors) + 1;
        spec.segmentation = Segmentation::Adaptive;
        spec.segments_max = Some(spec.segments);
        spec.segment_sectors = large as u32;
        spec.segments = ((all + large / 2) / large).max(1) as u32;
        findings.add("cache.segmentation", FindingConfidence::Measured);
    }

    /// Number of places that are cached at a time.
    async fn segments(&self) -> (usize, FindingConfidence) {
        let mut count = 4;
        loop {
            // A late answer reduces the number, so the larger of two is right.
            let held = self.held_of(count).await.max(self.held_of(count).await);
            if held + 1 < count {
                return (held.max(1), FindingConfidence::Measured);
            }
            if count >= MOST_SEGMENTS {
                return (held, FindingConfidence::LowerBound);
            }
            count *= 4;
        }
    }

    /// How many of `count` places that were read are cached, tested from the last to the first.
    async fn held_of(&self, count: usize) -> usize {
        let places: Vec<Lbn> = (0..count).map(|_| self.bench.fresh().first).collect();
        for place in &places {
            self.bench.read(*place, 1, Instant::ZERO).await;
        }
        let (mut held, mut missed) = (0, 0);
        for (back, place) in places.iter().rev().enumerate() {
            if self.holds(*place).await {
                (held, missed) = (back + 1, 0)
            } else {
                missed += 1
            }
            if missed == MISSED {
                break;
            }
        }
        held
    }

    /// Whether a reused place outlives later ones.
    async fn replacement(&self, segments: usize, findings: &mut Findings) -> Replacement {
        if !(2..=MOST_REPLACED).contains(&segments) {
            findings.add("cache.replacement", FindingConfidence::Default);
            return Replacement::Lru;
        }
        findings.add("cache.replacement", FindingConfidence::Measured);
        // With replacement by age, one more read after the reuse evicts it; with replacement by use, one less than the number of
        // segments never does.
        let (one, many) = (self.outlives(segments, 1).await, self.outlives(segments, segments - 1).await);
        match (one, many) {
            (0..=BY_CHANCE, _) => Replacement::Fifo,
            (_, BY_RULE..) => Replacement::Lru,
            _ => Replacement::Random,
        }
    }

    /// In how many of fifteen rounds the oldest of `segments` places, read again, is cached after `more` others.
    async fn outlives(&self, segments: usize, more: usize) -> usize {
        times(SURVIVALS, async |_| {
            let places: Vec<Lbn> = (0..segments + more).map(|_| self.bench.fresh().first).collect();
            for (index, place) in places.iter().enumerate() {
                if index == segments {
                    self.bench.read(places[0], 1, Instant::ZERO).await;
                }
                self.bench.read(*place, 1, Instant::ZERO).await;
            }
            self.holds(places[0]).await
        })
        .await
    }

    /// Whether the disk keeps sectors that pass between the head's arrival and the request, and whether it keeps the whole track.
    async fn learn_arrival(&self, spec: &mut CacheSpec, findings: &mut Findings) {
        let (mut before, mut whole) = (0, 0);
        let unit = self.bench.unit();
        for _ in 0..ARRIVALS {
            let track = self.bench.fresh();
            let half = track.sectors / 2 / unit * unit;
            let lbn = track.first + u64::from(half);
            self.bench.read(lbn, unit, Instant::ZERO).await;
            before += usize::from(self.holds(Lbn(lbn.0 - 1)).await);
            let track = self.bench.fresh();
            let lbn = track.first + u64::from(half);
            self.bench.read(lbn, unit, Instant::ZERO).await;
            let at = self.bench.disk().now() + self.bench.turns(TRACK_READ);
            whole += usize::from(self.holds_at(track.first, at).await);
        }
        findings.add("cache.read_on_arrival", FindingConfidence::Measured);
        if whole + 1 >= ARRIVALS && spec.read_ahead == ReadAhead::Track {
            spec.read_ahead = ReadAhead::OnArrival;
        } else {
            spec.read_on_arrival = before >= ARRIVED;
        }
    }

    /// Whether a hit at the end of the read-ahead extends it by the same amount.
    async fn goes_on_after_hit(&self) -> bool {
        let (bench, ahead) = (self.bench, u64::from(self.ahead));
        let held = times(3, async |_| {
            let first = bench.fresh().first;
            let end = bench.read(first, bench.unit(), Instant::ZERO).await.ended;
            let last = first + (u64::from(bench.unit()) + ahead - 1);
            bench.read(last, 1, end + self.reading(ahead as f64)).await;
            let at = bench.disk().now() + self.reading(ahead as f64);
            self.holds_at(last + ahead, at).await
        });
        held.await >= 2
    }

    async fn learn_habits(&self, spec: &mut CacheSpec, findings: &mut Findings) {
        if spec.read_ahead != ReadAhead::None {
            let place = Place { from: 0, sectors: self.bench.unit() };
            spec.read_ahead_on_hit = match spec.read_ahead {
                ReadAhead::Segment => self.goes_on_after_hit().await,
                _ => {
                    let far = i64::from((spec.read_ahead_max_sectors / 2).min(self.bench.size() / 2));
                    spec.segments > 1 && self.reaches(place, far, When::ReadAgain).await
                }
            };
            findings.add("cache.read_ahead_on_hit", FindingConfidence::Measured);
            // Sectors read while the next command is on its way are no minimum.
            let on_the_way = 2.0 * self.hits.base / self.bench.turn * f64::from(self.bench.size()) + 2.0;
            let cut_off = if self.reaches(place, on_the_way as i64 * 2, When::CutOff).await {
                self.ahead(place, When::CutOff).await
            } else {
                0
            };
            spec.read_ahead_min_sectors = (cut_off as u32).min(spec.read_ahead_max_sectors);
            findings.add("cache.read_ahead_min_sectors", FindingConfidence::Measured);
            let sectors = (spec.segment_sectors / 2).max(1);
            let last = i64::from(spec.read_ahead_max_sectors) - 1;
            if spec.read_ahead == ReadAhead::Segment {
                let over = Place { from: 0, sectors };
                spec.read_ahead_over_requested = self.reaches(over, last, When::Later).await;
                findings.add("cache.read_ahead_over_requested", FindingConfidence::Measured);
            }
            spec.almost_hits = self.almost_hits(findings).await;
        }
        if self.bench.disk().info().may_write {
            spec.read_hits_on_written =
                overhead::hit_on_written(self.bench, &self.hits, self.reading(f64::from(self.ahead)))
                    .await
                    .is_some();
            findings.add("cache.read_hits_on_written", FindingConfidence::Measured);
        } else {
            findings.add("cache.read_hits_on_written", FindingConfidence::Default);
        }
    }

    /// Whether sequential reads keep up with the media: a read that begins at the sector being read must continue the read-ahead.
    async fn almost_hits(&self, findings: &mut Findings) -> bool {
        const PAIRS: usize = 15;
        let unit = self.bench.unit();
        // Pairs at different places: after one late answer, the read-ahead meanwhile would answer all that follow.
        let late = times(PAIRS, async |_| {
            let lbn = self.bench.fresh().first;
            self.bench.read(lbn, unit, Instant::ZERO).await;
            let took = self.bench.read(lbn + u64::from(unit), unit, Instant::ZERO).await.took();
            took.0 as f64 > LATE_TURNS * self.bench.turn
        });
        let is_late = late.await * 2 > PAIRS;
        findings.add_if(is_late, "cache.almost_hits", FindingConfidence::UpperBound);
        !is_late
    }
}
