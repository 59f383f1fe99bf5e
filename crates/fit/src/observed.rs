//! What a disk did: its requests, in order of issue, with their response times.

use headstack_model::{Lbn, Nanos, Op, Request};
use headstack_workload::trace::{Kind, Record};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Requests that a fit needs at least.
pub const LEAST_REQUESTS: usize = 500;

/// Why a trace cannot tell about a disk. Displays as one line.
#[derive(Debug, thiserror::Error)]
pub enum TraceFault {
    /// Too few of its requests have a completion.
    #[error("{with} of its {all} requests have a completion; a fit needs {LEAST_REQUESTS}")]
    FewCompletions {
        /// Reads and writes.
        all: usize,
        /// Those with a response time.
        with: usize,
    },
    /// A request lies beyond the disk.
    #[error(
        "{beyond} of its {all} requests lie beyond the {sectors} blocks of the disk: it is of another disk, or of a partition of a larger one"
    )]
    Beyond {
        /// Requests beyond the end.
        beyond: usize,
        /// All of them.
        all: usize,
        /// Blocks of the disk.
        sectors: u64,
    },
    /// More than one disk.
    #[error("it has {0} disks; choose one (--device)")]
    SeveralDisks(usize),
    /// Its times are those of memory.
    #[error("{0} % of its responses take less than {1} ms: it is of a page cache, or of no rotating disk")]
    NoDisk(u32, f64),
    /// All times are the same.
    #[error("all its response times are {0} ms")]
    OneTime(f64),
}

/// A request with its measured response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedRequest {
    /// The request.
    pub request: Request,
    /// When it was issued, since the first.
    pub issued: Nanos,
    /// Its number in the trace.
    pub number: usize,
    /// The number of the request whose completion was the last before its issue, and the time from there: a program waits for an answer
    /// before it asks again. `None` at the start.
    pub after: Option<(usize, Nanos)>,
    /// The measured response time.
    pub response: Nanos,
}

/// A trace of one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedTrace {
    /// Its reads, writes and flushes with completions, in order of issue.
    pub requests: Vec<ObservedRequest>,
    /// Requests without a completion, which are left out.
    pub incomplete: usize,
}

impl ObservedTrace {
    /// Collects the requests of a trace to a disk of `sectors` blocks of `sector_bytes` bytes.
    ///
    /// *Errors:* the trace does not tell about one rotating disk of this size.
    pub fn collect(
        records: impl Iterator<Item = Record>,
        sector_bytes: u32,
        sectors: u64,
    ) -> Result<ObservedTrace, TraceFault> {
        let mut trace = ObservedTrace { requests: Vec::new(), incomplete: 0 };
        let (mut devices, mut beyond) = (BTreeSet::new(), 0);
        let (mut start, mut thinks) = (None, Vec::new());
        for record in records {
            devices.insert(record.device);
            let op = match record.kind {
                Kind::Read => Op::Read,
                Kind::Write => Op::Write,
                Kind::Flush => Op::Flush,
                Kind::Trim => continue,
            };
            let Some(response) = record.response else {
                trace.incomplete += 1;
                continue;
            };
            let first = *start.get_or_insert(record.time);
            let lbn = record.offset / u64::from(sector_bytes);
            let count = record.end().div_ceil(u64::from(sector_bytes)) - lbn;
            beyond += usize::from(lbn + count > sectors);
            thinks.push(record.think);
            trace.requests.push(ObservedRequest {
                request: match op {
                    Op::Flush => Request::flush(),
                    op => Request { op, lbn: Lbn(lbn), sectors: count as u32, fua: false },
                },
                issued: record.time.since(first),
                number: 0,
                after: None,
                response,
            });
        }
        if devices.len() > 1 {
            return Err(TraceFault::SeveralDisks(devices.len()));
        }
        let with = trace.transfers().count();
        let all = with + trace.incomplete;
        if with < LEAST_REQUESTS {
            return Err(TraceFault::FewCompletions { all, with });
        }
        if beyond > 0 {
            return Err(TraceFault::Beyond { beyond, all, sectors });
        }
        trace.check_times()?;
        match thinks.into_iter().collect::<Option<Vec<Nanos>>>() {
            Some(thinks) => trace.follow_each(&thinks),
            None => trace.follow_completions(),
        }
        Ok(trace)
    }

    /// Each request follows the one before it.
    fn follow_each(&mut self, thinks: &[Nanos]) {
        for (number, request) in self.requests.iter_mut().enumerate() {
            request.number = number;
            request.after = number.checked_sub(1).map(|before| (before, thinks[before]));
        }
    }

    /// Each request follows the completion that was the last before its issue.
    fn follow_completions(&mut self) {
        self.requests.sort_by_key(|request| request.issued);
        let mut outstanding = BinaryHeap::new();
        let mut last: Option<(Nanos, usize)> = None;
        for (number, request) in self.requests.iter_mut().enumerate() {
            while let Some(Reverse(next)) = outstanding
                .peek()
                .copied()
                .filter(|Reverse(next): &Reverse<(Nanos, usize)>| next.0 <= request.issued)
            {
                outstanding.pop();
                last = Some(next);
            }
            request.number = number;
            request.after = last.map(|(at, before)| (before, request.issued - at));
            outstanding.push(Reverse((request.issued + request.response, number)));
        }
    }

    /// Reads and writes, which move data.
    fn transfers(&self) -> impl Iterator<Item = &ObservedRequest> {
        self.requests.iter().filter(|request| request.request.op != Op::Flush)
    }

    /// Checks that the times are those of a disk with an arm: some reads must have waited for it.
    fn check_times(&self) -> Result<(), TraceFault> {
        let mut times: Vec<Nanos> = self.transfers().map(|request| request.response).collect();
        times.sort_unstable_by_key(|time| Reverse(*time));
        if times.first() == times.last() {
            return Err(TraceFault::OneTime(times[0].as_ms()));
        }
        // A disk with an arm needs a millisecond for all but hits in its cache.
        let quick = times.iter().filter(|time| **time < Nanos::from_ms(1.0)).count();
        let share = (quick * 100 / times.len()) as u32;
        if share >= 98 {
            return Err(TraceFault::NoDisk(share, 1.0));
        }
        Ok(())
    }

    /// The number of requests before the last `share`.
    pub fn split(&self, share: f64) -> usize {
        (self.requests.len() as f64 * (1.0 - share)) as usize
    }
}

/// The end of a run of requests, for the distance to the next.
pub(crate) fn end_of(request: &Request) -> u64 {
    request.lbn.0 + u64::from(request.sectors)
}
