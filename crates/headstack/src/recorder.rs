//! Records the statistics of each request of a run, and calls the program's observer.

use crate::numbers::grouped;
use crate::requests::KeptRequests;
use crate::stream_watch::StreamWatch;
use headstack_model::{Instant, Nanos};
use headstack_sim::stats::Collector;
use headstack_sim::{Completion, Finished, Observer, Outcome, Tenure};
use headstack_workload::{Issue, Load};

pub(crate) struct Recorder<'a> {
    pub(crate) statistics: Collector,
    pub(crate) observer: Option<&'a mut dyn Observer>,
    pub(crate) response_times: Option<Vec<Nanos>>,
    pub(crate) requests: Option<Box<KeptRequests>>,
    /// Whether the requests to each volume form one stream.
    pub(crate) streams: Vec<StreamWatch>,
    /// The longest time that a command spent at each device.
    pub(crate) longest_command: Vec<Nanos>,
    /// Requests that a drive could not carry out.
    failed: u64,
    /// Which sources have issued a request; the last entry is for all sources beyond the others.
    has_issued: Vec<bool>,
}

impl<'a> Recorder<'a> {
    /// A recorder of a load with this number of named sources, for a rig of these numbers of volumes and devices.
    pub(crate) fn new(statistics: Collector, sources: usize, volumes: usize, devices: usize) -> Recorder<'a> {
        Recorder {
            streams: vec![StreamWatch::default(); volumes],
            longest_command: vec![Nanos::ZERO; devices],
            statistics,
            observer: None,
            response_times: None,
            requests: None,
            failed: 0,
            has_issued: vec![false; sources + 1],
        }
    }

    /// A remark on the requests that failed, whose times count as those of the others.
    pub(crate) fn remark_on_failures(&self) -> Option<String> {
        let count = grouped(self.failed);
        (self.failed > 0)
            .then(|| format!("{count} requests failed, because a drive was dead or a block unreadable"))
    }

    /// Requests that were issued and have not completed.
    pub(crate) fn outstanding(&self) -> u64 {
        self.statistics.requests() - self.statistics.completed()
    }
}

impl Observer for Recorder<'_> {
    #[inline]
    fn issued(&mut self, now: Instant, issue: &Issue, load: &dyn Load) {
        let last = self.has_issued.len() - 1;
        let has_issued = &mut self.has_issued[(issue.source as usize).min(last)];
        if !*has_issued {
            *has_issued = true;
            self.statistics.count_from(issue.source, load.measured_from(issue.source));
        }
        self.statistics.issued(now, issue);
        self.streams[issue.device as usize].observe(&issue.request);
        if let Some(requests) = &mut self.requests {
            requests.issued(issue);
        }
        if let Some(observer) = &mut self.observer {
            observer.issued(now, issue, load);
        }
    }

    #[inline]
    fn finished(&mut self, finished: &Finished) {
        let counts = self.statistics.finished(finished);
        let has_failed = matches!(finished.completion.outcome, Outcome::Dead | Outcome::MediumError);
        self.failed += u64::from(has_failed);
        if let Some(times) = &mut self.response_times {
            times.push(finished.completion.response());
        }
        if let Some(requests) = &mut self.requests {
            requests.finished(finished, counts);
        }
        if let Some(observer) = &mut self.observer {
            observer.finished(finished);
        }
    }

    #[inline]
    fn served(&mut self, device: u32, command: &Completion) {
        let longest = &mut self.longest_command[device as usize];
        *longest = command.response().max(*longest);
        if let Some(observer) = &mut self.observer {
            observer.served(device, command);
        }
    }

    fn held(&mut self, tenure: &Tenure) {
        if let Some(observer) = &mut self.observer {
            observer.held(tenure);
        }
    }

    fn sees_parts(&self) -> bool {
        self.observer.as_ref().is_some_and(|observer| observer.sees_parts())
    }

    fn part(&mut self, device: u32, issued: Instant, part: &Completion) {
        if let Some(observer) = &mut self.observer {
            observer.part(device, issued, part);
        }
    }

    #[inline]
    fn stops(&self) -> bool {
        self.observer.as_ref().is_some_and(|observer| observer.stops())
    }
}
