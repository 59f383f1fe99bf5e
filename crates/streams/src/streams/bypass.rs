//! Decides whether requests of streams wait for turns, or bypass the scheduler.
//!
//! A disk may serve few streams as well by its own cache and queue, and each request waits less then: in the turn of one stream the
//! others wait, and a read may wait for a longer one that is read ahead. So while streams are few, the scheduler measures how long
//! requests wait for each byte with turns. Then it sends each request to the disk as it arrives, for a trial period, and measures
//! again. It keeps the bypass while requests do not wait much longer.
//!
//! The wait is the number of outstanding requests over time, divided by the bytes read: by Little's law that is the mean wait of a
//! byte, in which requests count that are not answered yet. Where clients keep a number of requests outstanding, its inverse is
//! throughput.
//!
//! Where R, D or N is given, the user wants turns, and nothing is measured.

use super::config::Config;
use headstack_model::{Instant, Nanos};

/// Streams up to which a bypass is tried: most caches of drives have 8 to 32 segments, and a trial costs what they lose by it.
const MOST_STREAMS: usize = 16;

/// Factor by which reads may wait longer in a bypass than with turns. Turns gain less than this where all they save is the gaps between
/// small requests (27 % for one reader of 16 KiB on an Exos X18).
const WORTH: f64 = 4.0 / 3.0;

/// The same limit for a bypass that is in use because its trial succeeded, so that chance does not end it.
const STILL_WORTH: f64 = 1.25 * WORTH;

/// Least number of requests over which a wait is measured, in all and for each stream.
const REQUESTS: u64 = 64;
const REQUESTS_PER_STREAM: u64 = 4;

/// Least time over which it is measured: some turns of the disk, in which small requests meet and miss their sectors.
const LEAST_TIME: Nanos = Nanos(200_000_000);

/// Time after which fewer requests and turns are enough.
const ENOUGH_TIME: Nanos = Nanos(4_000_000_000);

/// Factor by which reads wait longer than with turns in a trial that is ended at once. Small requests of several clients may take a second
/// to synchronise with the disk's rotation, and wait several times as long until then.
const HOPELESS: f64 = 5.0;

/// Length of a trial: a sixtieth of the shortest time until the next.
const TRIAL: Nanos = Nanos(1_000_000_000);

/// Least number of requests for any decision.
const LEAST_REQUESTS: u64 = 8;

/// Shortest and longest time from one failed trial to the next; each failure doubles it.
const RETRY: Nanos = Nanos(60_000_000_000);
const LATEST_RETRY: Nanos = Nanos(960_000_000_000);

/// A stream with a request within this time counts as served by the disk.
pub(super) const RECENT: Nanos = Nanos(5_000_000_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Turns,
    /// Each goes to the disk at once, to measure what that costs.
    Trial,
    Bypass,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    requests: u64,
    bytes: u64,
    /// Outstanding requests, summed up over nanoseconds.
    waited_ns: f64,
}

impl Tally {
    /// In nanoseconds per byte.
    fn wait(&self) -> f64 {
        self.waited_ns / self.bytes.max(1) as f64
    }
}

/// What a decision depends on, in addition to the wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) streams: usize,
    pub(super) turns: u64,
    pub(super) outstanding: u64,
    /// Whether a client has a guarantee: guarantees are kept in turns.
    pub(super) has_guarantees: bool,
}

#[derive(Debug)]
pub(super) struct Bypass {
    is_allowed: bool,
    mode: Mode,
    tally: Tally,
    /// When the tally began, and up to when it counts.
    since: Instant,
    upto: Instant,
    /// Streams and turns when it began.
    streams: usize,
    turns: u64,
    /// Answers that are not counted before it begins.
    skipped: u64,
    /// The last measured wait with turns, in nanoseconds per byte, and the number of streams then.
    reference: f64,
    reference_streams: usize,
    retry: Nanos,
    retry_at: Instant,
    /// Streams in the last trial that failed.
    failed_with: usize,
}

impl Bypass {
    pub(super) fn new(config: &Config) -> Bypass {
        Bypass {
            is_allowed: config.scheduling && !config.is_as_published(),
            mode: Mode::Turns,
            tally: Tally::default(),
            since: Instant::ZERO,
            upto: Instant::ZERO,
            streams: 0,
            turns: 0,
            skipped: 0,
            reference: f64::INFINITY,
            reference_streams: 0,
            retry: RETRY,
            retry_at: Instant::ZERO,
            failed_with: usize::MAX,
        }
    }

    /// Whether requests of streams go to the disk as they come.
    pub(super) fn is_on(&self) -> bool {
        self.mode != Mode::Turns
    }

    /// Counts the time since the last call, in which this number of requests was outstanding.
    pub(super) fn advance(&mut self, now: Instant, outstanding: u64) {
        if self.skipped == 0 {
            self.tally.waited_ns += outstanding as f64 * now.since(self.upto).0 as f64;
        } else {
            self.since = now;
        }
        self.upto = now;
    }

    pub(super) fn answered(&mut self, bytes: u64) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else {
            self.tally.requests += 1;
            self.tally.bytes += bytes;
        }
    }

    pub(super) fn is_due(&self, now: Instant, turns: u64) -> bool {
        let took = now.since(self.since);
        let (Tally { requests, .. }, wanted) =
            (self.tally, REQUESTS.max(REQUESTS_PER_STREAM * self.streams as u64));
        // Waits differ within a round: whole rounds count, if that does not take too long.
        let is_round = !self.is_on() && turns >= self.turns + 2 * self.streams as u64;
        let is_enough = match self.mode {
            Mode::Turns => took >= LEAST_TIME && requests >= wanted && is_round,
            Mode::Trial => {
                took >= TRIAL || requests >= LEAST_REQUESTS && self.tally.wait() > HOPELESS * self.reference
            }
            Mode::Bypass => took >= LEAST_TIME && requests >= wanted,
        };
        self.is_allowed && (is_enough || took >= ENOUGH_TIME && requests >= LEAST_REQUESTS)
    }

    /// Decides by what was measured since the last decision.
    pub(super) fn decide(&mut self, now: Instant, load: Load) {
        let is_few = !load.has_guarantees && (1..=MOST_STREAMS).contains(&load.streams);
        let is_measured = self.tally.requests >= LEAST_REQUESTS;
        let wait = self.tally.wait();
        // Waits grow with the streams.
        let reference = self.reference * load.streams as f64 / self.reference_streams.max(1) as f64;
        match self.mode {
            // Others may be about to be found.
            Mode::Turns if load.streams > self.streams => self.enter(Mode::Turns, now, load),
            Mode::Turns => {
                (self.reference, self.reference_streams) = (wait, load.streams);
                let may_try = now >= self.retry_at || load.streams < self.failed_with;
                self.enter(if is_few && may_try { Mode::Trial } else { Mode::Turns }, now, load);
            }
            Mode::Trial if is_few && is_measured && wait <= WORTH * reference => {
                (self.retry, self.failed_with) = (RETRY, usize::MAX);
                self.enter(Mode::Bypass, now, load);
            }
            Mode::Trial => {
                (self.retry_at, self.failed_with) = (now + self.retry, load.streams);
                self.retry = Nanos(2 * self.retry.0).min(LATEST_RETRY);
                self.enter(Mode::Turns, now, load);
            }
            Mode::Bypass if is_few && wait <= STILL_WORTH * reference => {
                self.enter(Mode::Bypass, now, load);
            }
            Mode::Bypass => self.enter(Mode::Turns, now, load),
        }
    }

    fn enter(&mut self, mode: Mode, now: Instant, load: Load) {
        let was_on = self.is_on();
        (self.mode, self.since, self.tally) = (mode, now, Tally::default());
        (self.streams, self.turns) = (load.streams, load.turns);
        if was_on != self.is_on() {
            // What is outstanding was begun the other way.
            self.skipped = load.outstanding + load.streams as u64;
        }
    }
}
