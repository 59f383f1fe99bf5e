use super::*;
use crate::shape::generator;

const DRAWS: usize = 100_000;

fn draws<V: Quantity>(text: &str, seed: u64) -> Vec<f64> {
    let distribution: Distribution<V> = text.parse().expect("the text is good");
    let sampler = distribution.sampler().expect("it was checked when it was read");
    let mut random = generator(seed);
    (0..DRAWS).map(|_| sampler.draw(&mut random).to_f64()).collect()
}

fn share(values: &[f64], of: impl Fn(f64) -> bool) -> f64 {
    values.iter().filter(|value| of(**value)).count() as f64 / values.len() as f64
}

/// That a share lies within 4 standard deviations of the one expected.
fn assert_share(name: &str, found: f64, expected: f64) {
    let sigma = (expected * (1.0 - expected) / DRAWS as f64).sqrt();
    assert!((found - expected).abs() <= 4.0 * sigma + 1e-12, "{name}: {found}, where {expected} is expected");
}

/// That mean and variance lie within 4 standard deviations of those expected; `kurtosis` is the fourth central moment
/// over the variance squared.
fn assert_moments(name: &str, values: &[f64], mean: f64, variance: f64, kurtosis: f64) {
    let n = values.len() as f64;
    let found = values.iter().sum::<f64>() / n;
    assert!((found - mean).abs() <= 4.0 * (variance / n).sqrt(), "{name}: mean {found}, expected {mean}");
    let found = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    let sigma = variance * ((kurtosis - 1.0) / n).sqrt();
    assert!((found - variance).abs() <= 4.0 * sigma, "{name}: variance {found}, expected {variance}");
}

fn assert_quantiles(name: &str, values: &[f64], quantiles: &[(f64, f64)]) {
    for (limit, expected) in quantiles {
        assert_share(&format!("{name} below {limit}"), share(values, |value| value <= *limit), *expected);
    }
}

#[test]
fn every_distribution_matches_its_moments_and_quantiles() {
    // (text, mean, variance, kurtosis, quantiles); a constant and two values have no quantiles beyond their shares.
    type Expected = (&'static str, f64, f64, f64, &'static [(f64, f64)]);
    let cases: [Expected; 9] = [
        ("uniform(10,30)", 20.0, 400.0 / 12.0, 1.8, &[(12.0, 0.1), (20.0, 0.5), (28.0, 0.9)]),
        ("exponential(7)", 7.0, 49.0, 9.0, &[(4.852_030_3, 0.5), (20.969_305_6, 0.95)]),
        ("exponential(3,7)", 10.0, 49.0, 9.0, &[(7.852_030_3, 0.5), (3.0, 0.0)]),
        ("normal(-5,20)", -5.0, 400.0, 3.0, &[(-25.0, 0.158_655_3), (-5.0, 0.5), (27.897_072_5, 0.95)]),
        ("poisson(3)", 3.0, 3.0, 3.0 + 1.0 / 3.0, &[(0.0, 0.049_787_1), (3.0, 0.647_231_9)]),
        ("poisson(4,40)", 44.0, 40.0, 3.0 + 1.0 / 40.0, &[(36.0, 0.1153036)]),
        ("two-valued(1,11,0.3)", 4.0, 21.0, 0.7 / 0.3 + 0.3 / 0.7 - 1.0, &[(1.0, 0.7), (11.0, 1.0)]),
        ("pareto(2,6)", 2.4, 0.24, 38.666_666_7, &[(2.0 * 1.122_462_05, 0.5), (2.0 * 1.467_799_27, 0.9)]),
        ("empirical(1:1,5:0,7:3)", 5.5, 6.75, 0.75 / 0.25 + 0.25 / 0.75 - 1.0, &[(1.0, 0.25), (7.0, 1.0)]),
    ];
    for (index, (text, mean, variance, kurtosis, quantiles)) in cases.into_iter().enumerate() {
        let values = draws::<f64>(text, index as u64);
        assert_moments(text, &values, mean, variance, kurtosis);
        assert_quantiles(text, &values, quantiles);
    }
    assert!(draws::<f64>("constant(2.5)", 1).iter().all(|value| *value == 2.5));
}

#[test]
fn poisson_counts_match_their_probabilities() {
    for mean in [0.5, 9.0, 10.0, 30.0, 300.0] {
        let values = draws::<f64>(&format!("poisson({mean})"), 8);
        assert_moments("poisson", &values, mean, mean, 3.0 + 1.0 / mean);
        let around = mean.floor();
        for count in [around - 3.0, around, around + 5.0].into_iter().filter(|count| *count >= 0.0) {
            let expected = (count * mean.ln() - mean - libm::lgamma(count + 1.0)).exp();
            assert_share(&format!("{count} of {mean}"), share(&values, |value| value == count), expected);
        }
    }
}

#[test]
fn drawn_times_match_distribution_clipped_at_zero() {
    let values = draws::<Nanos>("exponential(20ms)", 1);
    assert_moments("exponential", &values, 20e6, 400e12, 9.0);
    let values = draws::<Nanos>("uniform(1ms,5ms)", 2);
    assert_moments("uniform", &values, 3e6, 16e12 / 12.0, 1.8);
    // A bell cut at its mean is a half bell: mean σ√(2/π), variance σ²(1 - 2/π).
    let values = draws::<Nanos>("normal(0ms,10ms)", 3);
    let pi = std::f64::consts::PI;
    assert_moments("half", &values, 10e6 * (2.0 / pi).sqrt(), 1e14 * (1.0 - 2.0 / pi), 3.869_18);
    assert_eq!(draws::<Nanos>("normal(0ms,0ms)", 4), vec![0.0; DRAWS]);
    let whole: Vec<f64> = draws::<Nanos>("uniform(2ns,4ns)", 5);
    for value in [2.0, 3.0, 4.0] {
        assert_share("a whole nanosecond", share(&whole, |drawn| drawn == value), 1.0 / 3.0);
    }
}

#[test]
fn first_draws_match_golden_values() {
    let first = |text| draws::<f64>(text, 11)[..2].to_vec();
    let found: Vec<Vec<f64>> =
        ["exponential(1)", "normal(0,1)", "poisson(50)", "pareto(1,2)"].into_iter().map(first).collect();
    let expected: [[f64; 2]; 4] = [
        [4.424883386592161, 0.24786956475075458],
        [0.5659077308359737, 0.10262479650269259],
        [50.0, 57.0],
        [9.138001372116502, 1.1319420460204044],
    ];
    assert_eq!(found, expected);
}

fn ranks(text: &str, places: u64) -> Vec<u64> {
    let popularity: Popularity = text.parse().expect("the text is good");
    let ranks = popularity.ranks(places).expect("it was checked when it was read");
    let mut random = generator(12);
    (0..DRAWS).map(|_| ranks.draw(&mut random)).collect()
}

fn below(ranks: &[u64], limit: u64) -> f64 {
    ranks.iter().filter(|rank| **rank < limit).count() as f64 / ranks.len() as f64
}

#[test]
fn zipf_follows_its_law_at_every_exponent_and_size() {
    for exponent in [0.2, 0.99, 1.0, 1.0 + 1e-9, 1.3, 3.0] {
        for places in [1, 2, 10, 1000] {
            let drawn = ranks(&format!("zipf({exponent})"), places);
            assert!(drawn.iter().all(|rank| *rank < places));
            let weight = |rank: u64| (rank as f64 + 1.0).powf(-exponent);
            let total: f64 = (0..places).map(weight).sum();
            for limit in [1, 2, 5, 100].into_iter().filter(|limit| *limit <= places) {
                let expected = (0..limit).map(weight).sum::<f64>() / total;
                assert_share(&format!("{limit} of {places} at {exponent}"), below(&drawn, limit), expected);
            }
        }
    }
    assert!(ranks("zipf(0.5)", u64::MAX).iter().any(|rank| *rank > u64::MAX / 2));
}

#[test]
fn even_pareto_normal_and_zoned_popularity_match_shares() {
    assert_share("even", below(&ranks("even", 10), 3), 0.3);
    let pareto = ranks("pareto(0.2)", 1_000_000);
    assert_share("a fifth of the places", below(&pareto, 200_000), 0.8);
    assert_share("a fifth of a fifth", below(&pareto, 40_000), 0.64);
    let bell = ranks("normal(10)", 1000);
    assert_share("half", below(&bell, 500), 0.5);
    assert_share("one deviation down", below(&bell, 400), 0.158_655_3);
    let zones = ranks("zoned(60/10,0/20,30/20,10/50)", 1000);
    for (limit, expected) in [(50, 0.3), (100, 0.6), (300, 0.6), (400, 0.75), (500, 0.9), (1000, 1.0)] {
        assert_share("zoned", below(&zones, limit), expected);
    }
}

#[test]
fn every_distribution_reads_back_as_written() {
    for text in [
        "constant(3ms)",
        "constant(0ms)",
        "uniform(1ms,5ms)",
        "exponential(20ms)",
        "exponential(1s,1500us)",
        "normal(1s,333ns)",
        "two-valued(1ms,100ms,0.125)",
        "pareto(1us,1.5)",
        "empirical(1ms:1,2ms:0.5)",
    ] {
        let read: Distribution<Nanos> = text.parse().expect("the text is good");
        assert_eq!(read.to_string(), text);
    }
    for text in ["constant(-2.5)", "normal(0,10000)", "poisson(3)", "poisson(1,3)", "empirical(8:3,128:1)"] {
        let read: Distribution<f64> = text.parse().expect("the text is good");
        assert_eq!(read.to_string(), text);
    }
    for text in ["even", "zipf(1.2)", "pareto(0.2)", "normal(10)", "zoned(60/10,40/90)"] {
        let read: Popularity = text.parse().expect("the text is good");
        assert_eq!(read.to_string(), text);
    }
}

#[test]
fn values_accept_any_unit_and_spaces() {
    let time = |text: &str| text.parse::<Distribution<Nanos>>().expect("the text is good").to_string();
    assert_eq!(time("20ms"), "constant(20ms)");
    assert_eq!(time(" uniform ( 0.5 ms , 2min ) "), "uniform(500us,120s)");
    assert_eq!(time("exponential(1h)"), "exponential(3600s)");
    let number = "8".parse::<Distribution<f64>>().expect("the text is good");
    assert_eq!(number, Distribution::Constant(8.0));
}

#[test]
fn every_parse_fault_is_reported_in_one_line() {
    let time = |text: &str| text.parse::<Distribution<Nanos>>().expect_err("the text is bad").to_string();
    let number = |text: &str| text.parse::<Distribution<f64>>().expect_err("the text is bad").to_string();
    let places = |text: &str| text.parse::<Popularity>().expect_err("the text is bad").to_string();
    let form = "is no distribution; write a value or NAME(VALUE,…), such as exponential(20ms)";
    assert_eq!(time("20"), format!("`20` {form}"));
    assert_eq!(time("exponential(20ms"), format!("`exponential(20ms` {form}"));
    assert_eq!(time("exponential(20)"), "`20` is no time (such as 20ms; units: ns, us, ms, s, min, h)");
    assert_eq!(
        time("exponentail(20ms)"),
        "`exponentail` is no distribution; known: constant, uniform, exponential, normal, poisson, two-valued, pareto, \
         empirical; did you mean `exponential`?"
    );
    assert_eq!(time("uniform(1ms)"), "uniform takes 2 values, where 1 values are given");
    assert_eq!(time("uniform(2ms,1ms)"), "uniform: the end is 1ms, where the start or more is allowed");
    assert_eq!(time("poisson(3)"), "poisson draws whole numbers, not times");
    assert_eq!(
        time("constant(2401h)"),
        "constant: a time is 8643600s, where up to a hundred days is allowed"
    );
    assert_eq!(number("normal(0,-1)"), "normal: the deviation is -1, where 0 or more is allowed");
    assert_eq!(number("normal(0,nan)"), "`nan` is no number");
    assert_eq!(number("poisson(1e10)"), "poisson: the mean is 10000000000, where 0 to 1e9 is allowed");
    assert_eq!(number("two-valued(1,2,1.5)"), "two-valued: the share is 1.5, where 0 to 1 is allowed");
    assert_eq!(number("pareto(0,2)"), "pareto: the least value is 0, where more than 0 is allowed");
    assert_eq!(number("pareto(1,0)"), "pareto: the shape is 0, where 0.01 to 1e6 is allowed");
    assert_eq!(number("empirical(8)"), "`8` is no VALUE:WEIGHT");
    assert_eq!(number("empirical(8:-1)"), "empirical: a weight is -1, where 0 to 1e12 is allowed");
    assert_eq!(number("empirical(8:0)"), "empirical: the sum of weights is 0, where more than 0 is allowed");
    assert_eq!(number("1e300"), "constant: a number is 1e300, where -2^53 to 2^53 is allowed");
    assert_eq!(places("zipf(0)"), "zipf: the exponent is 0, where 0.01 to 20 is allowed");
    assert_eq!(
        places("zoned(60/10,30/90)"),
        "zoned: the sum of accesses is 90, where 100 percent is allowed"
    );
    assert_eq!(
        places("zipfian(1)"),
        "`zipfian` is no distribution; known: even, zipf, pareto, normal, zoned; did you mean `zipf`?"
    );
}
