//! Tables of rows of studies.

use headstack::report::Table;
use headstack_studies::study::{self, Alone, Length, Reproduction};

/// The text `published / simulated` for this metric. The simulated value has four significant digits, and at most three decimals.
fn compared(done: &Reproduction, metric: &str) -> Result<String, String> {
    let row = done.rows.iter().find(|row| row.expected.metric == metric);
    let values = row.and_then(|row| row.expected.value.zip(row.ours));
    let (published, ours) = values.ok_or_else(|| format!("the study has no value of {metric}"))?;
    let decimals = (3 - ours.abs().log10().floor() as i32).clamp(0, 3) as usize;
    let ours = format!("{ours:.decimals$}");
    let ours = if ours.contains('.') { ours.trim_end_matches('0').trim_end_matches('.') } else { &ours };
    Ok(format!("{published} / {ours}"))
}

pub(super) fn st2000dm006() -> Result<String, String> {
    let done = reproduced("st2000dm006")?;
    let mut table = Table::new("ST2000DM006", ["measured / simulated", ""]);
    let depths: Vec<String> =
        [1, 2, 4, 8, 16, 32].map(|depth| format!("random_read_qd{depth}_iops")).to_vec();
    let depths: Vec<&str> = depths.iter().map(String::as_str).collect();
    let quantiles: Vec<String> = [1, 10, 50, 90, 99].map(|p| format!("random_read_qd1_p{p}_ms")).to_vec();
    let quantiles: Vec<&str> = quantiles.iter().map(String::as_str).collect();
    let rows: [(&str, &[&str]); 5] = [
        ("random reads at depth 1, 2, 4, 8, 16, 32 (IOPS)", &depths),
        ("response at depth 1: p1, p10, p50, p90, p99 (ms)", &quantiles),
        ("sequential reads, writes (MB/s)", &["sequential_read_mb_s", "sequential_write_mb_s"]),
        ("random writes (IOPS)", &["random_write_iops"]),
        ("FLUSH after 8, 64 random writes (ms)", &["flush_after_8_ms", "flush_after_64_ms"]),
    ];
    for (what, metrics) in rows {
        let pairs: Result<Vec<String>, String> =
            metrics.iter().map(|metric| compared(&done, metric)).collect();
        table.row([what.to_string(), pairs?.join(", ")]);
    }
    Ok(table.to_markdown())
}

fn reproduced(name: &str) -> Result<Reproduction, String> {
    let study = study::named(name).map_err(|error| error.to_string())?;
    study.reproduce(Length::Full, &Alone).map_err(|error| error.to_string())
}

/// Random reads of the Ultrastar HC570 at several queue depths.
pub(super) fn hc570() -> Result<String, String> {
    let done = reproduced("modern-drives")?;
    let mut table = Table::new("Ultrastar HC570", ["measured / simulated", ""]);
    let metric = |name: &str| compared(&done, &format!("ultrastar-hc570.random_128k_{name}"));
    let rates = [metric("qd2_over_qd1")?, metric("qd32_over_qd1")?];
    table.row(["rate at depth 2, 32 over that at depth 1".to_string(), rates.join(", ")]);
    let tails: Result<Vec<String>, String> =
        [4, 8, 16, 32].map(|depth| metric(&format!("qd{depth}_p99_over_mean"))).into_iter().collect();
    table.row(["99th percentile over the mean at depth 4, 8, 16, 32".to_string(), tails?.join(", ")]);
    Ok(table.to_markdown())
}
