//! Measures other load of the machine, which delays answers: stolen time (the share of processor time that a virtual machine's host gave to
//! others), and the share of the time in which a program waited for a processor.
//!
//! *Source:* `man 5 proc_stat`; the kernel's "PSI - Pressure Stall Information".

use crate::files;
use crate::units::significant;
use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::time::{Duration, Instant};

/// Minimum share of waiting time at which a machine counts as busy. *Source:* assumption.
const BUSY_WAITED: f64 = 0.25;
/// Minimum share of stolen time at which a machine counts as busy. *Source:* assumption.
const BUSY_STOLEN: f64 = 0.05;
/// A smaller share of stolen time is not reported.
const WORTH_NAMING: f64 = 0.005;

/// Processor time since the machine started, of all processors together, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessorTime {
    all: u64,
    stolen: u64,
}

impl ProcessorTime {
    /// The time now; none if the system does not report it.
    pub(crate) fn now() -> Option<ProcessorTime> {
        ProcessorTime::parse(&files::read_text(Path::new("/proc/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<ProcessorTime> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest times are in user and nice already.
        Some(ProcessorTime { all: times.get(..8)?.iter().sum(), stolen: times[7] })
    }

    /// Share of the processors' time since then that was stolen; none if the system does not report it.
    pub(crate) fn stolen_share(self) -> Option<f64> {
        Some(ProcessorTime::now()?.stolen_since(self))
    }

    fn stolen_since(self, then: ProcessorTime) -> f64 {
        let all = self.all.saturating_sub(then.all);
        self.stolen.saturating_sub(then.stolen) as f64 / all.max(1) as f64
    }
}

/// Time in which at least one program waited for a processor, since the machine started; none if the system does not report it.
fn waited() -> Option<Duration> {
    parse_waited(&files::read_text(Path::new("/proc/pressure/cpu")).ok()?)
}

fn parse_waited(text: &str) -> Option<Duration> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = line.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
    total.parse().ok().map(Duration::from_micros)
}

/// Measures a machine's load from its creation on.
pub(crate) struct Watch {
    began: Instant,
    processors: Option<ProcessorTime>,
    waited: Option<Duration>,
}

impl Watch {
    pub(crate) fn begin() -> Watch {
        #[allow(clippy::disallowed_methods, reason = "what the machine does has the machine's time")]
        let began = Instant::now();
        Watch { began, processors: ProcessorTime::now(), waited: waited() }
    }

    pub(crate) fn load(&self) -> Load {
        let meanwhile = waited().zip(self.waited).map(|(now, then)| now.saturating_sub(then));
        let elapsed = self.began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        Load {
            waited: meanwhile.map(|time| (time.as_secs_f64() / elapsed).min(1.0)),
            stolen: self.processors.and_then(ProcessorTime::stolen_share),
        }
    }
}

/// Other load of the machine, in shares from 0 to 1; none if the system does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    /// The share of the time in which a program waited for a processor.
    pub(crate) waited: Option<f64>,
    /// The share of the processors' time that was stolen.
    pub(crate) stolen: Option<f64>,
}

impl Load {
    /// Whether the load may delay answers.
    pub(crate) fn is_high(&self) -> bool {
        self.waited.is_some_and(|share| share >= BUSY_WAITED)
            || self.stolen.is_some_and(|share| share >= BUSY_STOLEN)
    }
}

impl Display for Load {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{} %", significant(100.0 * share, 2));
        let waited = self
            .waited
            .map(|share| format!("programs waited for a processor in {} of the time", percent(share)));
        let stolen = self.stolen.filter(|share| *share >= WORTH_NAMING);
        let stolen = stolen.map(|share| format!("{} of the processors' time was stolen", percent(share)));
        f.write_str(&waited.into_iter().chain(stolen).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_share_covers_all_time_between_two_readings() {
        let first =
            ProcessorTime::parse("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 1 1 1\n").expect("it is whole");
        let then = ProcessorTime::parse("cpu  60 0 60 170 0 0 0 10 5 0\n").expect("it is whole");
        let later = ProcessorTime::parse("cpu  60 0 60 170 0 0 0 30 5 0\n").expect("it is whole");
        assert_eq!((then.stolen_since(first), later.stolen_since(then)), (0.0, 1.0));
        assert_eq!(ProcessorTime::parse("cpu 1 2 3\n"), None);
        assert_eq!(then.stolen_since(then), 0.0);
    }

    #[test]
    fn pressure_wait_is_read_from_the_some_line() {
        let text = "some avg10=94.46 avg60=88.93 avg300=94.96 total=1795516049\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(parse_waited(text), Some(Duration::from_micros(1_795_516_049)));
        assert_eq!(parse_waited("some avg10=0.00\n"), None);
        assert_eq!(parse_waited("full total=1\n"), None);
    }

    #[test]
    fn load_is_high_if_programs_wait_or_time_is_stolen() {
        let load = |waited, stolen| Load { waited, stolen };
        assert!(!load(None, None).is_high() && !load(Some(0.1), Some(0.01)).is_high());
        assert!(load(Some(0.5), Some(0.0)).is_high() && load(None, Some(0.2)).is_high());
        assert_eq!(
            load(Some(0.944), Some(0.013)).to_string(),
            "programs waited for a processor in 94 % of the time, 1.3 % of the processors' time was stolen"
        );
        assert_eq!(
            load(Some(1.0), Some(0.001)).to_string(),
            "programs waited for a processor in 100 % of the time"
        );
        assert_eq!(load(None, Some(0.2)).to_string(), "20 % of the processors' time was stolen");
    }
}
