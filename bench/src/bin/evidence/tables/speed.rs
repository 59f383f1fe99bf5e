//! The table of speed, from the newest record of `make speed`. This program does not measure speed, because that depends on the machine.

use super::EvidenceTable;
use headstack::report::Table;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of records, from the repository's root.
const RECORDS: &str = "bench/runs";

/// The newest record of this name. The names of the folders are their dates.
#[allow(clippy::disallowed_methods, reason = "the records are files")]
fn newest_record(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let records =
        entries.filter_map(|entry| Some(entry.ok()?.path().join(name))).filter(|path| path.exists());
    records.max().ok_or_else(|| format!("{} has no {name}", folder.display()))
}

/// A rate in words, as `3.6 million`.
fn rate_in_words(rate: f64) -> String {
    if rate >= 1e6 { format!("{:.1} million", rate / 1e6) } else { format!("{:.0} thousand", rate / 1e3) }
}

/// The table of the newest record, with its commit and machine.
///
/// *Errors:* there is no record, or it has other columns.
#[allow(clippy::disallowed_methods, reason = "the records are files")]
pub(super) fn newest() -> Result<EvidenceTable, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = newest_record(&root.join(RECORDS), "speed.tsv")?;
    let place = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
    let text = fs::read_to_string(&path).map_err(|error| format!("{place}: {error}"))?;
    let (stamp, table) = parsed(&text).ok_or_else(|| format!("{place}: not as `make speed` writes it"))?;
    Ok(EvidenceTable { table, record: Some(format!("*{stamp}: `{place}`.*")) })
}

/// The stamp and the table of a record.
fn parsed(text: &str) -> Option<(&str, String)> {
    let mut lines = text.lines();
    let stamp = lines.next()?.strip_prefix("# ")?;
    let names: Vec<&str> = lines.next()?.split('\t').collect();
    let column = |name: &str| names.iter().position(|other| *other == name);
    let (load, rate) = (column("load")?, column("requests_per_cpu_s")?);
    let (disksim, ratio) = (column("disksim_requests_per_cpu_s")?, column("ratio")?);
    let mut table = Table::new("Speed", ["load", "requests a CPU second", "DiskSim 4.0", "ratio"]);
    for line in lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let in_words = |column: usize| Some(cells.get(column)?.parse().ok().map(rate_in_words));
        table.row([
            cells.get(load)?.to_string(),
            in_words(rate)??,
            in_words(disksim)?.unwrap_or_else(|| "–".to_string()),
            cells.get(ratio)?.replace('-', "–"),
        ]);
    }
    Some((stamp, table.to_markdown()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "# Commit abc, 2026-11-24, a processor\nload\trequests\tcpu_s\trequests_per_cpu_s\tdisksim_requests_per_cpu_s\tratio\n\
                          streams\t2000000\t0.600\t3334265\t34000\t98.1\nfio job\t2000000\t0.725\t2757291\t-\t-\n";

    #[test]
    fn record_becomes_a_table_with_its_stamp() {
        let (stamp, table) = parsed(RECORD).expect("it is well-formed");
        assert_eq!(stamp, "Commit abc, 2026-11-24, a processor");
        assert!(table.contains("| streams | 3.3 million | 34 thousand | 98.1 |"), "{table}");
        assert!(table.contains("| fio job | 2.8 million | – | – |"), "{table}");
    }

    #[test]
    fn record_of_other_columns_is_refused() {
        assert!(parsed("load\tratio\nstreams\t1\n").is_none());
        assert!(parsed("# stamp\nload\tratio\nstreams\t1\n").is_none());
    }
}
