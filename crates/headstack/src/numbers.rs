//! Computes and formats the numbers of results.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The mean of independent values, and half the width of its Student's interval at this confidence; none for fewer than two.
pub fn confidence_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|one| (one - mean) * (one - mean)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    Some((mean, student.inverse_cdf(0.5 + confidence / 2.0) * error))
}

/// A quotient; 0 if the divisor is 0.
pub fn ratio(value: f64, by: f64) -> f64 {
    if by > 0.0 { value / by } else { 0.0 }
}

/// An integer with its digits in groups of three: `1,234,567`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with this number of significant digits, without an exponent. Digits before the point are never cut.
pub fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value:.0}");
    }
    // Rounding may add a digit (99.96 to 100.0), so the digits are counted on the rounded number.
    let rounded: f64 =
        format!("{value:.*e}", (digits - 1) as usize).parse().expect("a formatted number reads back");
    let decimals = (digits - 1 - rounded.abs().log10().floor() as i32).max(0) as usize;
    format!("{value:.decimals$}")
}
