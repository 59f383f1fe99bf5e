//! A comparison as a table and as JSON.

use super::verdict::{Trust, Verdict};
use super::{Compared, Comparison, mean_ms};
use crate::emulate::summary::micros;
use crate::failure::Failure;
use crate::report::Table;
use crate::sim::text::figure;
use headstack_model::Nanos;
use serde_json::{Value, json};
use std::io::Write;

pub(super) fn print(comparison: &Comparison, verdict: &Verdict, out: &mut dyn Write) -> Result<(), Failure> {
    let Comparison { drive, seconds, speed, .. } = comparison;
    let times = if *speed == 1.0 { String::new() } else { format!(", {speed} times faster than real") };
    writeln!(out, "{drive}: {seconds} s a job in virtual and in real time{times}\n")?;
    let columns = [
        "job",
        "requests",
        "mean ms",
        "real",
        "p50 ms",
        "real",
        "p99 ms",
        "real",
        "off",
        "by chance",
        "late p50 us",
        "p99 us",
    ];
    let mut table = Table::new("Comparison", &columns);
    comparison.jobs.iter().for_each(|job| table.row(row(job)));
    writeln!(out, "{}", table.to_text())?;
    if let Some(stolen) = comparison.stolen {
        writeln!(out, "stolen time: {:.2} % of the processors' time", 100.0 * stolen)?;
    }
    writeln!(out, "{}", textwrap::fill(verdict.words(), 110))?;
    for reason in &verdict.reasons {
        writeln!(out, "{}", textwrap::fill(&format!("  {reason}"), 110))?;
    }
    Ok(())
}

fn quantile_ms(times: &[Nanos], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let index = (share * sorted.len() as f64) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).map_or(0.0, |time| time.as_ms())
}

fn row(compared: &Compared) -> Vec<String> {
    let both = |measure: &dyn Fn(&[Nanos]) -> f64| {
        [&compared.simulated, &compared.real].map(|of| figure(measure(of)))
    };
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let late = |share| micros(compared.lateness.quantile(share));
    let mut row = vec![compared.job.name.to_string(), compared.real.len().to_string()];
    row.extend(both(&mean_ms));
    row.extend(both(&|times| quantile_ms(times, 0.5)));
    row.extend(both(&|times| quantile_ms(times, 0.99)));
    row.extend([percent(compared.demerit), percent(compared.by_chance), late(0.5), late(0.99)]);
    row
}

pub(super) fn json(comparison: &Comparison, verdict: &Verdict) -> String {
    let side = |times: &[Nanos]| {
        json!({
            "requests": times.len(),
            "mean_ms": mean_ms(times),
            "p50_ms": quantile_ms(times, 0.5),
            "p99_ms": quantile_ms(times, 0.99),
        })
    };
    let job = |compared: &Compared| {
        let late = |share| compared.lateness.quantile(share).as_nanos() as f64 / 1e3;
        json!({
            "job": compared.job.name,
            "simulated": side(&compared.simulated),
            "real": side(&compared.real),
            "demerit_share_of_mean": compared.demerit,
            "demerit_by_chance": compared.by_chance,
            "lateness_us": {"p50": late(0.5), "p90": late(0.9), "p99": late(0.99)},
        })
    };
    let trust = match verdict.trust {
        Trust::Full => "full",
        Trust::Means => "means",
        Trust::None => "none",
    };
    let value = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "drive": comparison.drive,
        "seconds_a_job": comparison.seconds,
        "speed": comparison.speed,
        "real_time": comparison.is_real_time,
        "stolen_share": comparison.stolen,
        "jobs": comparison.jobs.iter().map(job).collect::<Vec<Value>>(),
        "trust": trust,
        "reasons": verdict.reasons,
    });
    serde_json::to_string_pretty(&value).expect("numbers and words are expressible in JSON")
}
