//! The confidence interval of a mean of few independent values. *Source:* "Student" (Gosset), "The probable error of a mean" (1908).

use super::Interval;

/// Quantiles of Student's distribution at 97.5 %, by degrees of freedom from 1 on.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The quantile of the normal distribution at 97.5 %.
const NORMAL: f64 = 1.959_963_985;

/// The quantile at 97.5 %, right to a thousandth; beyond the table by its expansion (Abramowitz and Stegun, 26.7.5).
fn quantile(freedom: usize) -> f64 {
    if let Some(found) = freedom.checked_sub(1).and_then(|index| QUANTILES.get(index)) {
        return *found;
    }
    let (z, cube) = (NORMAL, NORMAL * NORMAL * NORMAL);
    let inverse = 1.0 / freedom as f64;
    z + (cube + z) / 4.0 * inverse + (5.0 * cube * z * z + 16.0 * cube + 3.0 * z) / 96.0 * inverse * inverse
}

impl Interval {
    /// The mean of independent values with its interval; `None` for fewer than two.
    pub fn of_values(values: &[f64]) -> Option<Interval> {
        if values.len() < 2 {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        Some(Interval { mean, half_width: quantile(values.len() - 1) * error })
    }

    /// Whether it excludes zero: such a difference is larger than chance explains.
    pub fn excludes_zero(&self) -> bool {
        self.mean.abs() > self.half_width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_values_matches_manual_calculation() {
        assert_eq!(Interval::of_values(&[3.0]), None);
        // Standard deviation 1, so that of the mean is 1/√3.
        let found = Interval::of_values(&[4.0, 5.0, 6.0]).expect("there are three");
        assert_eq!(found.mean, 5.0);
        assert!((found.half_width - 4.303 / 3f64.sqrt()).abs() < 1e-12);
        assert!(found.excludes_zero());
        assert!(!Interval::of_values(&[-1.0, 2.0]).expect("there are two").excludes_zero());
    }

    #[test]
    fn quantiles_fall_to_the_normal_distribution_without_a_step() {
        assert!((1..2000).all(|freedom| quantile(freedom) > quantile(freedom + 1)));
        assert!((quantile(30) - quantile(31) - 0.0027).abs() < 5e-4, "{}", quantile(31));
        assert!((quantile(1_000_000) - NORMAL).abs() < 1e-5);
        assert!((quantile(120) - 1.9799).abs() < 1e-4, "{}", quantile(120));
    }
}
