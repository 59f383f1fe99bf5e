//! Which requests of a job have high priority, and which a duration limit.

use crate::fio::value::{Given, Parsed, wrong};

/// The most entries of `cmdprio_bssplit`.
const SIZES_MAX: usize = 64;

/// The priority of a share of the requests of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::fio) struct SizePriority {
    bytes: u64,
    percent: u64,
    /// Whether the class is that of high priority, and the duration limit; `None` for the class and limit of the requests in percent.
    own: Option<(bool, u8)>,
}

impl SizePriority {
    /// `cmdprio_bssplit=4k/10:64k/50` or `4k/10/1/0:64k/50/2/0/3`: bytes, percent, class, level, hint.
    pub(in crate::fio) fn read_list(given: &Given<'_>) -> Parsed<Vec<SizePriority>> {
        let parts = given.parts(':')?;
        if parts.len() > SIZES_MAX {
            return Err(format!("{} sizes, where at most {SIZES_MAX} are allowed", parts.len()));
        }
        let list = parts.iter().map(SizePriority::read).collect::<Parsed<Vec<_>>>()?;
        match list.iter().find(|one| total(&list, one.bytes) > 100) {
            Some(one) => Err(format!(
                "{} % of the requests of {} bytes have a priority, where at most 100 % are allowed",
                total(&list, one.bytes),
                one.bytes
            )),
            None => Ok(list),
        }
    }

    fn read(given: &Given<'_>) -> Parsed<SizePriority> {
        let fields = given.parts('/')?;
        let own = |class: &Given<'_>, level: &Given<'_>, hint: Option<&Given<'_>>| -> Parsed<(bool, u8)> {
            level.count(0, 7)?;
            let limit = hint.map_or(Ok(0), |hint| hint.count(0, 7))?;
            Ok((class.count(0, 3)? == 1, limit as u8))
        };
        let (percent, own) = match &fields[1..] {
            [] => (0, None),
            [percent] if percent.text().is_err() => (0, None),
            [percent] => (percent.percent()?, None),
            [percent, class, level] => (percent.percent()?, Some(own(class, level, None)?)),
            [percent, class, level, hint] => (percent.percent()?, Some(own(class, level, Some(hint))?)),
            _ => {
                return Err(wrong(
                    given.text()?,
                    "bytes/percent, or bytes/percent/class/level with or without /hint",
                ));
            }
        };
        Ok(SizePriority { bytes: fields[0].request_bytes()?, percent, own })
    }
}

fn total(list: &[SizePriority], bytes: u64) -> u64 {
    list.iter().filter(|one| one.bytes == bytes).map(|one| one.percent).sum()
}

/// The priority of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::fio) struct RequestPriority {
    /// Whether it is of the class of high priority.
    pub(in crate::fio) urgent: bool,
    /// Whether it is of the idle class.
    pub(in crate::fio) idle: bool,
    /// The number of its duration limit; 0 for none.
    pub(in crate::fio) limit: u8,
}

#[derive(Clone, Debug)]
pub(in crate::fio) struct JobPriority {
    pub(in crate::fio) percent: [u64; 3],
    /// By size of request, in place of `percent`; empty for none.
    pub(in crate::fio) by_size: [Vec<SizePriority>; 3],
    /// Whether the class of the requests in percent is that of high priority.
    pub(in crate::fio) by_percent: bool,
    /// The duration limit of the requests in percent.
    pub(in crate::fio) limit_by_percent: u64,
    /// Linux's class of the other requests; 0 for none.
    pub(in crate::fio) class_of_job: u64,
    /// The duration limit of the other requests.
    pub(in crate::fio) limit_of_job: u64,
}

impl Default for JobPriority {
    fn default() -> JobPriority {
        JobPriority {
            percent: [0; 3],
            by_size: [const { Vec::new() }; 3],
            by_percent: true,
            limit_by_percent: 0,
            class_of_job: 0,
            limit_of_job: 0,
        }
    }
}

impl JobPriority {
    /// Linux's class of high priority.
    const REAL_TIME: u64 = 1;
    /// Linux's class of requests that are served while no other waits.
    pub(in crate::fio) const IDLE: u64 = 3;

    /// Whether both of two keys are given of which fio allows only one.
    pub(in crate::fio) fn contradict(&self) -> bool {
        self.percent.iter().any(|percent| *percent > 0) && self.by_size.iter().any(|list| !list.is_empty())
    }

    /// The priority of the requests that have none of their own.
    fn usual(&self) -> RequestPriority {
        RequestPriority {
            urgent: self.class_of_job == JobPriority::REAL_TIME,
            idle: self.class_of_job == JobPriority::IDLE,
            limit: self.limit_of_job as u8,
        }
    }

    /// The priority of a request. `draw` gives a number from 1 to 100.
    #[cold]
    fn draw(&self, at: usize, bytes: u64, draw: impl FnOnce() -> u64) -> RequestPriority {
        let percent = self.percent(at, bytes);
        let drawn = match percent {
            0 => None,
            // One priority for all needs no draw.
            100 if self.by_size[at].is_empty() => Some(100),
            _ => Some(draw()).filter(|drawn| *drawn <= percent),
        };
        match drawn {
            Some(drawn) => self.in_percent(at, bytes, drawn),
            None => self.usual(),
        }
    }

    /// Percentage of a direction's requests of this size that have a priority other than the job's.
    fn percent(&self, at: usize, bytes: u64) -> u64 {
        match &self.by_size[at][..] {
            [] => self.percent[at],
            sizes => total(sizes, bytes),
        }
    }

    /// The priority of a request in percent. `drawn` is a number from 1 to [`JobPriority::percent`].
    fn in_percent(&self, at: usize, bytes: u64, drawn: u64) -> RequestPriority {
        let mut last = 0;
        let mut ends = self.by_size[at].iter().filter(|one| one.bytes == bytes).map(|one| {
            last += one.percent;
            (last, one.own)
        });
        let own = ends.find(|(end, _)| drawn <= *end).and_then(|(_, own)| own);
        let (urgent, limit) = own.unwrap_or((self.by_percent, self.limit_by_percent as u8));
        RequestPriority { urgent, idle: false, limit }
    }
}

/// The priorities of a job's requests, as they are issued: in most jobs all requests have the same.
#[derive(Clone, Debug)]
pub(in crate::fio) struct IssuedPriorities {
    usual: RequestPriority,
    /// The priorities if some requests have another one.
    shares: Option<Box<JobPriority>>,
}

impl IssuedPriorities {
    pub(in crate::fio) fn new(job: &JobPriority) -> IssuedPriorities {
        let has_shares =
            job.percent.iter().any(|percent| *percent > 0) || job.by_size.iter().any(|list| !list.is_empty());
        IssuedPriorities { usual: job.usual(), shares: has_shares.then(|| Box::new(job.clone())) }
    }

    /// The priority of a request. `draw` gives a number from 1 to 100.
    #[inline]
    pub(in crate::fio) fn draw(&self, at: usize, bytes: u64, draw: impl FnOnce() -> u64) -> RequestPriority {
        match &self.shares {
            None => self.usual,
            Some(shares) => shares.draw(at, bytes, draw),
        }
    }
}
