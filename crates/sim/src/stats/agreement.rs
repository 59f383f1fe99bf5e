//! How well simulated response times agree with measured ones: as distributions, and request by request.

use headstack_model::{Nanos, Op};
use schemars::JsonSchema;
use serde::Serialize;

use super::demerit;

/// The response times of one request: of the real drive, and of the simulated one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Pair {
    pub op: Op,
    pub measured: Nanos,
    pub simulated: Nanos,
}

/// The agreement over all requests, and over reads and writes apart.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Agreement {
    /// Over all requests.
    #[serde(flatten)]
    pub all: ClassAgreement,
    /// Over the reads, if there are any.
    pub reads: Option<ClassAgreement>,
    /// Over the writes, if there are any.
    pub writes: Option<ClassAgreement>,
}

/// The agreement over one class of requests.
///
/// *Units:* milliseconds where the name says so; shares are of one.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ClassAgreement {
    pub requests: usize,
    pub mean_measured_ms: f64,
    pub mean_simulated_ms: f64,
    /// Rms distance between the two distributions.
    pub demerit_ms: f64,
    /// The same as DiskSim computes it, from bucketed times.
    pub demerit_bucketed_ms: f64,
    /// `demerit_ms` over the measured mean, if that is not zero.
    pub demerit_share_of_mean: Option<f64>,
    /// Mean over the requests of the absolute error.
    pub mae_ms: f64,
    /// Median over the requests of the absolute error.
    pub median_ae_ms: f64,
    /// Share of the requests whose error is at most a tenth of the measured time.
    pub within_10_percent: f64,
    /// Correlation of measured and simulated time, if neither is constant.
    pub correlation: Option<f64>,
}

impl Agreement {
    /// The agreement over `pairs`; `None` if there are none.
    pub fn new(pairs: &[Pair]) -> Option<Agreement> {
        let class = |op| {
            let pairs: Vec<Pair> = pairs.iter().filter(|pair| pair.op == op).copied().collect();
            ClassAgreement::new(&pairs)
        };
        Some(Agreement { all: ClassAgreement::new(pairs)?, reads: class(Op::Read), writes: class(Op::Write) })
    }
}

impl ClassAgreement {
    /// The agreement over `pairs`, whatever their kind; `None` if there are none.
    pub fn new(pairs: &[Pair]) -> Option<ClassAgreement> {
        let measured: Vec<Nanos> = pairs.iter().map(|pair| pair.measured).collect();
        let simulated: Vec<Nanos> = pairs.iter().map(|pair| pair.simulated).collect();
        let demerit_ms = demerit::exact_ms(&measured, &simulated)?;
        let mean_measured_ms = mean_ms(&measured);
        let mut errors: Vec<Nanos> = pairs.iter().map(Pair::error).collect();
        errors.sort_unstable();
        Some(ClassAgreement {
            requests: pairs.len(),
            mean_measured_ms,
            mean_simulated_ms: mean_ms(&simulated),
            demerit_ms,
            demerit_bucketed_ms: demerit::bucketed_ms(&measured, &simulated)?,
            demerit_share_of_mean: (mean_measured_ms > 0.0).then_some(demerit_ms / mean_measured_ms),
            mae_ms: mean_ms(&errors),
            median_ae_ms: (errors[(errors.len() - 1) / 2].as_ms() + errors[errors.len() / 2].as_ms()) / 2.0,
            within_10_percent: pairs.iter().filter(|pair| pair.is_within_a_tenth()).count() as f64
                / pairs.len() as f64,
            correlation: correlation(pairs),
        })
    }
}

impl Pair {
    fn error(&self) -> Nanos {
        Nanos(self.measured.0.abs_diff(self.simulated.0))
    }

    fn is_within_a_tenth(&self) -> bool {
        u128::from(self.error().0) * 10 <= u128::from(self.measured.0)
    }
}

fn mean_ms(times: &[Nanos]) -> f64 {
    let sum: u128 = times.iter().map(|time| u128::from(time.0)).sum();
    sum as f64 / times.len() as f64 / 1e6
}

/// Pearson's correlation of the two times.
fn correlation(pairs: &[Pair]) -> Option<f64> {
    let mean = |side: fn(&Pair) -> f64| pairs.iter().map(side).sum::<f64>() / pairs.len() as f64;
    let measured_mean = mean(|pair| pair.measured.as_ms());
    let simulated_mean = mean(|pair| pair.simulated.as_ms());
    let (mut both, mut one, mut other) = (0.0, 0.0, 0.0);
    for pair in pairs {
        let (x, y) = (pair.measured.as_ms() - measured_mean, pair.simulated.as_ms() - simulated_mean);
        both += x * y;
        one += x * x;
        other += y * y;
    }
    (one > 0.0 && other > 0.0).then(|| both / (one * other).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(op: Op, measured_us: u64, simulated_us: u64) -> Pair {
        Pair { op, measured: Nanos(measured_us * 1000), simulated: Nanos(simulated_us * 1000) }
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value}, expected {expected}");
    }

    #[test]
    fn agreement_figures_match_manual_calculation() {
        let pairs = [
            pair(Op::Read, 10_000, 11_000),
            pair(Op::Write, 30_000, 24_000),
            pair(Op::Read, 20_000, 20_000),
            pair(Op::Read, 40_000, 45_000),
        ];
        let agreement = Agreement::new(&pairs).expect("there are pairs");
        let all = &agreement.all;
        assert_eq!(all.requests, 4);
        near(all.mean_measured_ms, 25.0);
        near(all.mean_simulated_ms, 25.0);
        // Sorted: 10, 20, 30, 40 against 11, 20, 24, 45.
        near(all.demerit_ms, (62f64 / 4.0).sqrt());
        near(all.demerit_share_of_mean.expect("the mean is 25 ms"), (62f64 / 4.0).sqrt() / 25.0);
        near(all.mae_ms, 3.0);
        near(all.median_ae_ms, 3.0);
        near(all.within_10_percent, 0.5);
        // Deviations -15, 5, -5, 15 and -14, -1, -5, 20: products 530, squares 500 and 622.
        near(all.correlation.expect("the times vary"), 530.0 / (500f64 * 622.0).sqrt());
        let reads = agreement.reads.expect("there are reads");
        assert_eq!(reads.requests, 3);
        near(reads.mae_ms, 2.0);
        near(reads.median_ae_ms, 1.0);
        near(reads.demerit_ms, (26f64 / 3.0).sqrt());
        let writes = agreement.writes.expect("there is a write");
        near(writes.demerit_ms, 6.0);
        near(writes.within_10_percent, 0.0);
        assert_eq!(writes.correlation, None);
    }

    #[test]
    fn identical_times_give_zero_demerit_and_full_correlation() {
        let pairs: Vec<Pair> = (1..500).map(|ms| pair(Op::Write, ms * 1000, ms * 1000)).collect();
        let agreement = Agreement::new(&pairs).expect("there are pairs");
        let all = agreement.all;
        assert_eq!(
            (all.demerit_ms, all.demerit_bucketed_ms, all.mae_ms, all.median_ae_ms),
            (0.0, 0.0, 0.0, 0.0)
        );
        assert_eq!(all.within_10_percent, 1.0);
        near(all.correlation.expect("the times vary"), 1.0);
        assert_eq!(agreement.reads, None);
        assert_eq!(Agreement::new(&[]), None);
    }

    #[test]
    fn agreement_json_has_the_keys_of_the_command() {
        let agreement =
            Agreement::new(&[pair(Op::Read, 1, 2), pair(Op::Read, 3, 4)]).expect("there are pairs");
        let value = serde_json::to_value(&agreement).expect("it is plain data");
        let keys = [
            "requests",
            "mean_measured_ms",
            "mean_simulated_ms",
            "demerit_ms",
            "demerit_bucketed_ms",
            "demerit_share_of_mean",
            "mae_ms",
            "median_ae_ms",
            "within_10_percent",
            "correlation",
        ];
        for key in keys {
            assert!(value[key].is_number() && value["reads"][key].is_number(), "{key}");
        }
        assert!(value["writes"].is_null());
    }
}
