//! Compares a study's own values with the published ones.

use crate::expect::{Basis, Expected, Kind};
use crate::study::Length;

/// What a study found for a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The name of the metric.
    pub metric: String,
    /// Its value in the unit of its row, or the reason why there is none.
    pub value: Result<f64, String>,
}

impl Measured {
    /// A value for a metric.
    pub fn new(metric: impl Into<String>, value: f64) -> Measured {
        Measured { metric: metric.into(), value: Ok(value) }
    }

    /// A metric that could not be measured here, for this reason.
    pub fn left_out(metric: impl Into<String>, reason: impl Into<String>) -> Measured {
        Measured { metric: metric.into(), value: Err(reason.into()) }
    }
}

/// The result of judging a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within its tolerance of a published figure that was used for no parameter.
    Pass,
    /// Within its tolerance of a figure that a parameter was taken from, or of a goal or check of the project's own.
    Held,
    /// Outside its tolerance, or not measured in a full run.
    Off,
    /// Not judged, for this reason.
    NotComparable(String),
}

impl Verdict {
    /// The verdict as a short name.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Held => "held",
            Verdict::Off => "off",
            Verdict::NotComparable(_) => "not comparable",
        }
    }
}

/// A row with the study's own value and the verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The published figure.
    pub expected: Expected,
    /// The study's own value; `None` if it computed none.
    pub ours: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

impl Judged {
    /// Why the row is not comparable, or what is known about its difference.
    pub fn reason(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::NotComparable(reason) => Some(reason),
            Verdict::Off => self.expected.reason.as_deref(),
            Verdict::Pass | Verdict::Held => None,
        }
    }

    /// Our value minus the published one.
    pub fn difference(&self) -> Option<f64> {
        Some(self.ours? - self.expected.value?)
    }
}

/// Judges each row by the value that was measured for its metric.
///
/// A row without a measured value is off in the full form; the short form may leave rows out.
///
/// # Panics
///
/// A value was measured for a metric that has no row.
pub fn judge(expected: Vec<Expected>, measured: &[Measured], length: Length) -> Vec<Judged> {
    for found in measured {
        let has_row = expected.iter().any(|row| row.metric == found.metric);
        assert!(has_row, "{} was measured, and expect.tsv has no row for it", found.metric);
    }
    let one = |expected: Expected| {
        let found = measured.iter().find(|found| found.metric == expected.metric).map(|found| &found.value);
        let verdict = verdict(&expected, found, length);
        Judged { ours: found.and_then(|value| value.as_ref().ok()).copied(), verdict, expected }
    };
    expected.into_iter().map(one).collect()
}

fn verdict(expected: &Expected, found: Option<&Result<f64, String>>, length: Length) -> Verdict {
    match (expected.kind, found) {
        (Kind::NotComparable, _) => Verdict::NotComparable(expected.reason.clone().unwrap_or_default()),
        (_, Some(Ok(ours))) if expected.is_met_by(*ours) => match expected.basis {
            Basis::Published => Verdict::Pass,
            Basis::Calibrated | Basis::Ours => Verdict::Held,
        },
        (_, Some(Err(reason))) => Verdict::NotComparable(reason.clone()),
        (_, None) if length == Length::Quick => {
            Verdict::NotComparable("left out of the short form".to_string())
        }
        _ => Verdict::Off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expect;

    const HEADER: &str = "metric\twhat\tkind\tvalue\ttolerance\tunit\tsource\tbasis\tfirst_run\treason\n";

    fn judged(measured: &[Measured], length: Length) -> Vec<(&'static str, Option<String>)> {
        let text = "a\tw\trelative\t10\t0.1\ts\tb\tpublished\t-\tknown to be slow\n\
                    c\tw\tnot-comparable\t2\t-\ts\tb\tpublished\t-\tanother disk\n";
        let rows = expect::parse(&format!("{HEADER}{text}"), "x.tsv").expect("the text is good");
        let rows = judge(rows, measured, length);
        rows.iter().map(|row| (row.verdict.name(), row.reason().map(str::to_string))).collect()
    }

    #[test]
    fn every_value_gets_the_verdict_of_its_row() {
        let other = ("not comparable", Some("another disk".to_string()));
        let both = |a| [Measured::new("a", a), Measured::new("c", 2.0)];
        assert_eq!(judged(&both(10.5), Length::Full), [("pass", None), other.clone()]);
        let slow = Some("known to be slow".to_string());
        assert_eq!(judged(&both(12.0), Length::Full), [("off", slow.clone()), other.clone()]);
        assert_eq!(judged(&both(f64::NAN), Length::Full), [("off", slow), other.clone()]);
        let none = [Measured::left_out("a", "no trace")];
        assert_eq!(judged(&none, Length::Full)[0], ("not comparable", Some("no trace".to_string())));
    }

    #[test]
    fn only_a_published_figure_that_was_not_put_in_can_pass() {
        let one = |basis: &str, ours| {
            let row = format!("a\tw\trelative\t10\t0.1\ts\tb\t{basis}\t-\n");
            let rows = expect::parse(&format!("{HEADER}{row}"), "x.tsv").expect("the text is good");
            judge(rows, &[Measured::new("a", ours)], Length::Full)[0].verdict.name()
        };
        assert_eq!(
            ["published", "calibrated", "ours"].map(|basis| one(basis, 10.5)),
            ["pass", "held", "held"]
        );
        assert_eq!(["published", "calibrated", "ours"].map(|basis| one(basis, 12.0)), ["off"; 3]);
    }

    #[test]
    fn only_the_short_form_leaves_a_row_out() {
        assert_eq!(judged(&[], Length::Full)[0].0, "off");
        let left = Some("left out of the short form".to_string());
        assert_eq!(judged(&[], Length::Quick)[0], ("not comparable", left));
    }

    #[test]
    #[should_panic(expected = "d was measured")]
    fn value_without_a_row_panics() {
        judged(&[Measured::new("d", 3.0)], Length::Full);
    }
}
