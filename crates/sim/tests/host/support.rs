//! Hosts, loads and what is watched of them.

use headstack_model::spec::CacheSpec;
use headstack_model::{Instant, Lbn, Op, Request, drives};
use headstack_sim::{Completion, Device, DeviceOptions, Engine, Finished, HostSpec, Observer, Outcome};
use headstack_workload::{Issue, Load, Poll};
use std::collections::BTreeMap;

/// A drive with positioning that takes time, a queue of this depth and no cache.
pub(crate) fn drive(depth: u32) -> Device {
    drive_that_orders(depth, "fcfs")
}

/// The same drive with an order of its own.
pub(crate) fn drive_that_orders(depth: u32, order: &str) -> Device {
    let mut spec = drives::load("atlas-10k").unwrap_or_else(|error| panic!("{error}"));
    spec.cache = CacheSpec { enabled: false, ..CacheSpec::default() };
    let options = DeviceOptions { seed: 1, depth: Some(depth), order: Some(order.to_string()) };
    Device::new(&spec, &options).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn host(text: &str) -> HostSpec {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Issues at their times, whatever comes back.
pub(crate) struct Script {
    issues: Vec<(Instant, Issue)>,
    next: usize,
}

impl Script {
    pub(crate) fn new(mut issues: Vec<(Instant, Issue)>) -> Script {
        issues.sort_by_key(|(at, issue)| (*at, issue.id));
        Script { issues, next: 0 }
    }

    /// Requests to volume 0, all at time 0.
    pub(crate) fn at_once(requests: &[Request]) -> Script {
        let issue = |(id, request): (usize, &Request)| (Instant::ZERO, Issue::new(0, *request, id as u64));
        Script::new(requests.iter().enumerate().map(issue).collect())
    }

    /// Requests of one moment, as a page cache sends them: the queue gathers all before it sends one.
    pub(crate) fn plugged(requests: &[Request]) -> Script {
        let mut script = Script::at_once(requests);
        script.issues.iter_mut().for_each(|(_, issue)| issue.direct = false);
        script
    }
}

impl Load for Script {
    fn poll(&mut self, now: Instant) -> Poll {
        match self.issues.get(self.next) {
            Some((at, issue)) if *at <= now => {
                self.next += 1;
                Poll::Issue(*issue)
            }
            Some((at, _)) => Poll::Later(*at),
            None => Poll::Done,
        }
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {}
}

/// All that was seen of a run.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) finished: Vec<Finished>,
    pub(crate) commands: Vec<Completion>,
}

impl Observer for Seen {
    fn finished(&mut self, finished: &Finished) {
        self.finished.push(*finished);
    }

    fn served(&mut self, _device: u32, command: &Completion) {
        self.commands.push(*command);
    }
}

impl Seen {
    pub(crate) fn end(&self) -> Instant {
        self.finished.iter().map(|one| one.completion.completed).max().unwrap_or(Instant::ZERO)
    }

    /// What holds of every run: each id came back once, its parts add up, and no command is longer than it may be.
    pub(crate) fn judge(&self, issued: &[Issue]) {
        let mut requests: BTreeMap<u64, Request> =
            issued.iter().map(|issue| (issue.id, issue.request)).collect();
        for one in &self.finished {
            let request = requests.remove(&one.id).expect("a request comes back once");
            assert_eq!(one.completion.request, request);
            assert_eq!(one.completion.parts.total(), one.completion.response(), "{one:?}");
            assert_eq!(one.completion.outcome, Outcome::Done);
        }
        assert!(requests.is_empty(), "requests that did not come back: {requests:?}");
    }

    /// The most commands that were out at a time.
    pub(crate) fn depth(&self) -> usize {
        let ends = self.commands.iter().map(|command| (command.completed, -1i64));
        let mut changes: Vec<_> =
            self.commands.iter().map(|command| (command.submitted, 1)).chain(ends).collect();
        changes.sort_unstable();
        let mut out = 0;
        let counts = changes.iter().map(|(_, change)| {
            out += change;
            out
        });
        counts.max().unwrap_or(0) as usize
    }

    /// Blocks that the devices read or wrote.
    pub(crate) fn sectors(&self) -> u64 {
        let data = self.commands.iter().filter(|command| command.request.op != Op::Flush);
        data.map(|command| u64::from(command.request.sectors)).sum()
    }
}

/// Runs a load on drives behind a host.
pub(crate) fn run(drives: Vec<Device>, host: &HostSpec, load: &mut dyn Load) -> Seen {
    let mut engine = Engine::with_host(drives, host).unwrap_or_else(|error| panic!("{error}"));
    let mut seen = Seen::default();
    engine.run_observed(load, &mut seen);
    seen
}

pub(crate) fn reads(lbns: impl IntoIterator<Item = u64>, sectors: u32) -> Vec<Request> {
    lbns.into_iter().map(|lbn| Request::read(Lbn(lbn), sectors)).collect()
}

pub(crate) fn writes(lbns: impl IntoIterator<Item = u64>, sectors: u32) -> Vec<Request> {
    lbns.into_iter().map(|lbn| Request::write(Lbn(lbn), sectors)).collect()
}
