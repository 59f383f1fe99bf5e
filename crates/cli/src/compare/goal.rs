//! `--goal METRIC<VALUE`: a bound that runs must meet.

use super::figures::{Metric, Ran};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Goal {
    pub(super) metric: Metric,
    /// Whether the metric must be below the bound, not above.
    is_below: bool,
    bound: f64,
}

impl Goal {
    /// `p99_ms<100`, `iops>500`.
    ///
    /// *Errors:* a message without the option's name.
    pub(super) fn parse(text: &str) -> Result<Goal, String> {
        let place =
            text.find(['<', '>']).ok_or("must be METRIC<NUMBER or METRIC>NUMBER, such as p99_ms<100")?;
        let (name, bound) = (text[..place].trim(), text[place + 1..].trim());
        let metric = Metric::parse(name)?;
        let bound: f64 = bound.parse().map_err(|_| format!("`{bound}` is no number"))?;
        if !bound.is_finite() {
            return Err(format!("`{bound}` is no finite number"));
        }
        Ok(Goal { metric, is_below: text[place..].starts_with('<'), bound })
    }

    pub(super) fn is_met(&self, ran: &Ran) -> bool {
        let value = ran.value(self.metric);
        if self.is_below { value < self.bound } else { value > self.bound }
    }

    pub(super) fn text(&self) -> String {
        format!("{}{}{}", self.metric.name(), if self.is_below { "<" } else { ">" }, self.bound)
    }

    pub(super) fn closest<'a>(&self, ran: &'a [Ran]) -> Option<&'a Ran> {
        let key = |ran: &Ran| ran.value(self.metric) * if self.is_below { 1.0 } else { -1.0 };
        ran.iter().min_by(|one, other| key(one).total_cmp(&key(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::ran;
    use super::*;

    #[test]
    fn goal_is_met_strictly_inside_its_bound() {
        let goal = Goal::parse("p99_ms < 100").expect("it is well formed");
        let cells = [ran(&[], &[120.0]), ran(&[], &[90.0, 100.0]), ran(&[], &[100.0])];
        assert_eq!(cells.each_ref().map(|ran| goal.is_met(ran)), [false, true, false]);
        assert_eq!(goal.text(), "p99_ms<100");
        let above = Goal::parse("p99_ms>110.5").expect("it is well formed");
        assert_eq!(cells.each_ref().map(|ran| above.is_met(ran)), [true, false, false]);
        assert_eq!(above.closest(&cells).map(|ran| ran.value(Metric::P99Ms)), Some(120.0));
    }

    #[test]
    fn malformed_goal_is_rejected_with_the_allowed_form() {
        let reported = |text: &str| Goal::parse(text).expect_err(text);
        assert_eq!(reported("p99_ms=100"), "must be METRIC<NUMBER or METRIC>NUMBER, such as p99_ms<100");
        assert_eq!(reported("p98_ms<100"), "no metric is called `p98_ms`; did you mean `p99_ms`?");
        assert_eq!(reported("iops>many"), "`many` is no number");
    }
}
