//! The verdict on whether real time on a machine can be trusted, in words.

use super::{Compared, Comparison};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Full,
    /// Means can be trusted; the slowest requests may be due to the machine.
    Means,
    None,
}

pub(super) struct Verdict {
    pub(super) trust: Trust,
    pub(super) reasons: Vec<String>,
}

/// Maximum distance from the simulated distribution, beyond that of chance, at which all of a job's figures can be trusted.
const NEAR: f64 = 0.02;
/// Maximum distance, beyond that of chance, at which a job's mean can be trusted.
const FAR: f64 = 0.10;
/// Maximum lateness of a punctual machine: median, and 99th percentile.
const IN_TIME: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(150)];

impl Verdict {
    pub(super) fn judge(comparison: &Comparison) -> Verdict {
        let jobs = comparison.jobs.iter().map(of_job);
        let (trusts, mut reasons): (Vec<Trust>, Vec<Option<String>>) = jobs.unzip();
        let trust = match (trusts.contains(&Trust::None), trusts.contains(&Trust::Means)) {
            (true, _) => Trust::None,
            (false, true) => Trust::Means,
            (false, false) => Trust::Full,
        };
        if trust != Trust::Full && !comparison.is_real_time {
            reasons.push(Some(super::super::running::NOT_REAL_TIME.to_string()));
        }
        if let Some(stolen) = comparison.stolen.filter(|share| trust != Trust::Full && *share > 0.01) {
            reasons.push(Some(format!("others had {:.1} % of its processors' time", 100.0 * stolen)));
        }
        Verdict { trust, reasons: reasons.into_iter().flatten().collect() }
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.trust != Trust::None
    }

    pub(super) fn words(&self) -> &'static str {
        match self.trust {
            Trust::Full => {
                "This machine can be trusted: what a client measures is the disk's, and its own way there."
            }
            Trust::Means => {
                "This machine can be trusted for means and throughput; its slowest requests may be its own, not the disk's."
            }
            Trust::None => {
                "This machine cannot be trusted with this disk now: it is too late to tell its own times from the disk's."
            }
        }
    }
}

fn of_job(job: &Compared) -> (Trust, Option<String>) {
    let beyond = job.demerit - job.by_chance;
    if beyond > NEAR {
        let trust = if beyond > FAR { Trust::None } else { Trust::Means };
        let (found, allowed) = (100.0 * job.demerit, 100.0 * (job.by_chance + NEAR));
        let reason = format!("{}: {found:.1} % off, where {allowed:.1} % is near", job.job.name);
        return (trust, Some(reason));
    }
    let late = [0.5, 0.99].map(|share| job.lateness.quantile(share));
    if late[0] > IN_TIME[0] || late[1] > IN_TIME[1] {
        let [p50, p99] = late.map(super::super::summary::micros);
        let reason = format!(
            "{}: late by {p50} us (p50) and {p99} us (p99), where 20 and 150 are in time",
            job.job.name
        );
        return (Trust::Means, Some(reason));
    }
    (Trust::Full, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_host::Lateness;

    fn compared(demerit: f64, by_chance: f64, late_us: u64) -> Compared {
        let mut lateness = Lateness::new();
        lateness.record(Duration::from_micros(late_us));
        let job = &super::super::job::ALL[0];
        Compared { job, simulated: Vec::new(), real: Vec::new(), demerit, by_chance, lateness }
    }

    fn verdict(jobs: Vec<Compared>, is_real_time: bool) -> Verdict {
        let (drive, stolen) = ("a drive".to_string(), Some(0.05));
        Verdict::judge(&Comparison { drive, seconds: 1, speed: 1.0, is_real_time, jobs, stolen })
    }

    #[test]
    fn worst_job_decides_the_verdict() {
        let full = verdict(vec![compared(0.03, 0.02, 15), compared(0.0, 0.0, 1)], false);
        assert_eq!((full.trust, full.reasons.len(), full.is_trusted()), (Trust::Full, 0, true));
        let means = verdict(vec![compared(0.05, 0.01, 10), compared(0.0, 0.0, 1)], true);
        assert_eq!(means.trust, Trust::Means);
        assert_eq!(
            means.reasons,
            [
                "random read, depth 1: 5.0 % off, where 3.0 % is near",
                "others had 5.0 % of its processors' time"
            ]
        );
        let none = verdict(vec![compared(0.05, 0.0, 10), compared(0.2, 0.05, 10)], false);
        assert_eq!((none.trust, none.reasons.len(), none.is_trusted()), (Trust::None, 4, false));
    }

    #[test]
    fn late_machine_is_trusted_for_means_only() {
        let late = verdict(vec![compared(0.0, 0.0, 200)], true);
        assert_eq!(late.trust, Trust::Means);
        assert!(late.reasons[0].contains("20 and 150 are in time"), "{:?}", late.reasons);
    }
}
