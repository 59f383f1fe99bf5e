//! Time that the machine's host gave to others (`man 5 proc_stat`): what a virtual machine's lateness often comes from.

use crate::files;
use std::path::Path;

/// Processor time since the machine started, of all processors together.
///
/// *Units:* ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessorTime {
    all: u64,
    stolen: u64,
}

impl ProcessorTime {
    /// Up to now; none where the system does not tell.
    pub(super) fn now() -> Option<ProcessorTime> {
        ProcessorTime::parse(&files::read_text(Path::new("/proc/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<ProcessorTime> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest times are in user and nice already.
        Some(ProcessorTime { all: times.get(..8)?.iter().sum(), stolen: times[7] })
    }

    /// Share of the processors' time from this one up to now that was stolen; none where the system does not tell.
    pub(super) fn stolen_share(self) -> Option<f64> {
        Some(ProcessorTime::now()?.stolen_since(self))
    }

    fn stolen_since(self, then: ProcessorTime) -> f64 {
        let all = self.all.saturating_sub(then.all);
        self.stolen.saturating_sub(then.stolen) as f64 / all.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_share_that_of_all_times_in_between() {
        let first =
            ProcessorTime::parse("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 1 1 1\n").expect("it is whole");
        let then = ProcessorTime::parse("cpu  60 0 60 170 0 0 0 10 5 0\n").expect("it is whole");
        let later = ProcessorTime::parse("cpu  60 0 60 170 0 0 0 30 5 0\n").expect("it is whole");
        assert_eq!((then.stolen_since(first), later.stolen_since(then)), (0.0, 1.0));
        assert_eq!(ProcessorTime::parse("cpu 1 2 3\n"), None);
        assert_eq!(then.stolen_since(then), 0.0);
    }
}
