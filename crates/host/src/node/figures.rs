//! Statistics of a node's thread: how long the disk had commands, and how long clients waited.

use hdrhistogram::Histogram;
use headstack_model::{Instant, Nanos};

#[derive(Debug, Default)]
pub(super) struct Busy {
    commands: usize,
    /// Time counted up to `since`.
    time: Nanos,
    since: Instant,
}

impl Busy {
    pub(super) fn begin(&mut self, now: Instant) {
        self.count(now);
        self.commands += 1;
    }

    pub(super) fn end(&mut self, now: Instant, commands: usize) {
        self.count(now);
        self.commands -= commands;
    }

    /// Commands at the disk.
    pub(super) fn commands(&self) -> usize {
        self.commands
    }

    fn count(&mut self, now: Instant) {
        (self.time, self.since) = (self.until(now), now);
    }

    pub(super) fn until(&self, now: Instant) -> Nanos {
        if self.commands > 0 { self.time + now.since(self.since) } else { self.time }
    }
}

/// A client's requests and response times at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientView {
    /// The client's number, as in streams.
    pub client: u64,
    /// Answered requests.
    pub requests: u64,
    /// Median of the response times.
    pub p50: Nanos,
    /// 99th percentile of the response times.
    pub p99: Nanos,
}

/// Response times by client, in bounded memory.
#[derive(Debug, Default)]
pub(super) struct Responses {
    /// By the connection's index, with its number, because an index is reused.
    clients: Vec<Option<(u64, Histogram<u32>)>>,
}

impl Responses {
    /// Maximum number of clients with response times, each in 10 KiB.
    const MOST: usize = 256;

    /// Range of the histograms in microseconds: half an hour, to two digits.
    const LONGEST: u64 = 1_800_000_000;

    pub(super) fn record(&mut self, link: usize, number: u64, took: Nanos) {
        if link >= Responses::MOST {
            return;
        }
        if self.clients.len() <= link {
            self.clients.resize_with(link + 1, || None);
        }
        let place = &mut self.clients[link];
        if place.as_ref().is_none_or(|(kept, _)| *kept != number) {
            let times = Histogram::new_with_bounds(1, Responses::LONGEST, 2);
            *place = Some((number, times.expect("the bounds are in order")));
        }
        let (_, times) = place.as_mut().expect("it was put there");
        times.saturating_record(took.0 / 1000);
    }

    pub(super) fn forget(&mut self, client: u64) {
        let its = |place: &&mut Option<(u64, _)>| matches!(place, Some((number, _)) if *number == client);
        if let Some(place) = self.clients.iter_mut().find(its) {
            *place = None;
        }
    }

    pub(super) fn views(&self) -> Vec<ClientView> {
        let view = |(client, times): &(u64, Histogram<u32>)| {
            let quantile = |share: f64| Nanos(1000 * times.value_at_quantile(share));
            ClientView { client: *client, requests: times.len(), p50: quantile(0.5), p99: quantile(0.99) }
        };
        self.clients.iter().flatten().map(view).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_covers_commands_in_flight() {
        let mut busy = Busy::default();
        busy.begin(Instant(10));
        busy.begin(Instant(20));
        busy.end(Instant(30), 1);
        assert_eq!(busy.until(Instant(35)), Nanos(25));
        busy.end(Instant(40), 1);
        assert_eq!(busy.until(Instant(90)), Nanos(30));
        busy.begin(Instant(100));
        assert_eq!(busy.until(Instant(105)), Nanos(35));
    }

    #[test]
    fn response_times_belong_to_the_current_client_of_a_link() {
        let mut responses = Responses::default();
        (0..100).for_each(|_| responses.record(1, 7, Nanos::from_ms(1.0)));
        responses.record(1, 7, Nanos::from_ms(500.0));
        responses.record(Responses::MOST, 8, Nanos::from_ms(1.0));
        let [view] = responses.views()[..] else { panic!("one client is kept") };
        assert_eq!((view.client, view.requests), (7, 101));
        let near = |time: Nanos, ms: f64| (time.as_ms() / ms - 1.0).abs() < 0.01;
        assert!(near(view.p50, 1.0) && near(view.p99, 1.0), "{view:?}");
        responses.record(1, 9, Nanos::from_secs(7200));
        let [view] = responses.views()[..] else { panic!("the place has one client") };
        assert!(view.client == 9 && view.requests == 1 && near(view.p50, 1_800_000.0), "{view:?}");
        responses.forget(9);
        assert_eq!(responses.views(), []);
    }
}
