//! Limits of a control group's requests to a disk, as `io.max` of Linux sets them: bytes and requests a second.
//!
//! Time is counted in slices of 100 ms, which begin with the first request after a pause. At any time the group may have sent what its limits
//! allow in all slices begun so far: so it sends in bursts, one at the start of each slice. What it leaves of a slice is lost. A request that is
//! larger than what a slice allows waits until its last byte is allowed.
//!
//! *Source:* Linux 6.1, `block/blk-throttle.c`: `tg_may_dispatch`, `tg_within_bps_limit`, `tg_within_iops_limit`, `throtl_trim_slice`.
//!
//! Not modelled: limits of groups within groups, the kernel's rounding to its clock ticks, and turns of six reads and two writes where both wait.

use headstack_model::{Instant, Nanos};
use std::collections::VecDeque;

/// What a group may send a second; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThrottleRates {
    /// Bytes a second, above 0.
    pub(crate) bytes: Option<u64>,
    /// Requests a second, above 0.
    pub(crate) requests: Option<u64>,
}

/// `DFL_THROTL_SLICE_HD`.
const SLICE: Nanos = Nanos(100_000_000);

/// What a rate allows in a time.
fn allowed(rate: u64, time: Nanos) -> u64 {
    u64::try_from(u128::from(rate) * u128::from(time.0) / 1_000_000_000).unwrap_or(u64::MAX)
}

/// The requests of a group in one direction, in order of arrival, each until the limits allow it.
#[derive(Debug)]
pub(crate) struct Throttle<T> {
    rates: ThrottleRates,
    waiting: VecDeque<(T, u64)>,
    /// When the first request may go, at the earliest.
    due: Instant,
    /// The start of the first slice that counts, and the time from which a request to an empty queue begins a new slice.
    from: Instant,
    until: Instant,
    /// Sent since `from`.
    bytes: u64,
    requests: u64,
}

impl<T> Throttle<T> {
    /// A group that has sent nothing.
    pub(crate) fn new(rates: ThrottleRates) -> Throttle<T> {
        let (from, until) = (Instant(0), Instant(0));
        Throttle { rates, waiting: VecDeque::new(), due: Instant::MAX, from, until, bytes: 0, requests: 0 }
    }

    /// Accepts a request of some bytes. [`Throttle::pop`] returns it when it may go, which may be at once.
    pub(crate) fn push(&mut self, now: Instant, request: T, bytes: u64) {
        if self.waiting.is_empty() {
            if self.until <= now {
                (self.from, self.bytes, self.requests) = (now, 0, 0);
            }
            self.due = now;
        }
        self.until = self.until.max(now + SLICE);
        self.waiting.push_back((request, bytes));
    }

    /// The next request, if it may go now.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<T> {
        let bytes = self.waiting.front()?.1;
        let wait = self.wait(now, bytes);
        if wait > Nanos(0) {
            self.due = now + wait;
            self.until = self.until.max(self.due);
            return None;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.requests += 1;
        self.forget_past_slices(now);
        let (request, _) = self.waiting.pop_front()?;
        self.due = if self.waiting.is_empty() { Instant::MAX } else { now };
        Some(request)
    }

    /// When to call [`Throttle::pop`]; [`Instant::MAX`] where nothing waits.
    pub(crate) fn next_event(&self) -> Instant {
        self.due
    }

    /// Time until the limits allow a request.
    fn wait(&self, now: Instant, bytes: u64) -> Nanos {
        let elapsed = now.since(self.from);
        let begun = Nanos((elapsed.0 / SLICE.0 + 1) * SLICE.0);
        let rest = begun - elapsed;
        let of_bytes = self.rates.bytes.map_or(Nanos(0), |rate| {
            let extra = self.bytes.saturating_add(bytes).saturating_sub(allowed(rate, begun));
            let time = (u128::from(extra) * 1_000_000_000).div_ceil(u128::from(rate));
            if extra == 0 { Nanos(0) } else { rest + Nanos(u64::try_from(time).unwrap_or(u64::MAX / 2)) }
        });
        let of_requests = self
            .rates
            .requests
            .map_or(Nanos(0), |rate| if self.requests < allowed(rate, begun) { Nanos(0) } else { rest });
        of_bytes.max(of_requests)
    }

    /// Subtracts what past slices allowed from what was sent, so that their unused rest cannot be sent later.
    fn forget_past_slices(&mut self, now: Instant) {
        let past = Nanos(now.since(self.from).0 / SLICE.0 * SLICE.0);
        let left =
            |sent: u64, rate: Option<u64>| rate.map_or(0, |rate| sent.saturating_sub(allowed(rate, past)));
        self.bytes = left(self.bytes, self.rates.bytes);
        self.requests = left(self.requests, self.rates.requests);
        self.from += past;
        self.until = now + SLICE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    /// The times in ms at which requests of these bytes go that arrive at these times in ms.
    fn sent_at(rates: ThrottleRates, requests: &[(u64, u64)]) -> Vec<u64> {
        let ms = |time: Instant| time.0 / 1_000_000;
        let mut throttle = Throttle::new(rates);
        let (mut arrivals, mut sent) = (requests.iter().peekable(), Vec::new());
        loop {
            let arrival = arrivals.peek().map_or(Instant::MAX, |(at, _)| Instant(at * 1_000_000));
            let now = arrival.min(throttle.next_event());
            if now == Instant::MAX {
                return sent;
            }
            if let Some((_, bytes)) = arrivals.next_if(|_| arrival == now) {
                throttle.push(now, (), *bytes);
            }
            while throttle.pop(now).is_some() {
                sent.push(ms(now));
            }
        }
    }

    fn bytes(rate: u64) -> ThrottleRates {
        ThrottleRates { bytes: Some(rate), requests: None }
    }

    fn requests(rate: u64) -> ThrottleRates {
        ThrottleRates { bytes: None, requests: Some(rate) }
    }

    #[test]
    fn group_sends_what_a_slice_allows_at_its_start() {
        let all = sent_at(requests(30), &[(0, KIB); 8]);
        assert_eq!(all, [0, 0, 0, 100, 100, 100, 200, 200]);
    }

    #[test]
    fn request_larger_than_a_slice_allows_waits_for_its_last_byte() {
        // A slice of 1,000,000 bytes a second allows 100,000.
        let all = sent_at(bytes(1_000_000), &[(0, 250_000), (0, 250_000)]);
        assert_eq!(all, [250, 500]);
    }

    #[test]
    fn rest_of_a_past_slice_is_lost() {
        let steady: Vec<(u64, u64)> = (0..10).map(|place| (90 * place, 1)).chain([(900, 1); 5]).collect();
        // Ten requests were sent when 27 were allowed; at 900 ms one still goes for the slice before, and three for that slice.
        assert_eq!(sent_at(requests(30), &steady)[10..], [900, 900, 900, 900, 1000]);
        let later = sent_at(requests(30), &[(0, 1), (1000, 1), (1000, 1), (1000, 1), (1000, 1)]);
        assert_eq!(later, [0, 1000, 1000, 1000, 1100]);
    }

    #[test]
    fn lower_of_two_limits_decides() {
        let both = ThrottleRates { bytes: Some(1_000_000), requests: Some(10) };
        assert_eq!(sent_at(both, &[(0, 1), (0, 1), (0, 1)]), [0, 100, 200]);
        assert_eq!(sent_at(both, &[(0, 300_000), (0, 1)]), [300, 300]);
    }

    #[test]
    fn rate_over_seconds_is_the_limit_and_without_limits_nothing_waits() {
        let arrivals = vec![(0, 64 * KIB); 400];
        let all = sent_at(bytes(4 << 20), &arrivals);
        let (seconds, sent) = (all[all.len() - 1] as f64 / 1e3, 400.0 * 64.0 * 1024.0);
        assert!((sent / seconds / f64::from(4 << 20) - 1.0).abs() < 0.02, "{seconds} s");
        assert_eq!(sent_at(ThrottleRates::default(), &arrivals), vec![0; 400]);
    }
}
