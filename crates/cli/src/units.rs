//! Formats numbers for users, and parses sizes from them.

use headstack::DriveSpec;
pub(crate) use headstack::{grouped, significant};
use parse_size::Config;

/// A capacity in the decimal units of the makers, to three digits: `9.10 GB`.
pub(crate) fn capacity(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["kB", "MB", "GB", "TB", "PB"] {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    format!("{} {unit}", significant(value, 3))
}

/// A size of memory in powers of 1024, to three digits: `8 MiB`, `1.43 MiB`.
pub(crate) fn memory(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if value < 1000.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    let is_whole = value.fract() == 0.0;
    if is_whole { format!("{value:.0} {unit}") } else { format!("{} {unit}", significant(value, 3)) }
}

/// A count with its noun: `1 disk`, `1,024 disks`.
pub(crate) fn count(count: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// A size on the command line: bytes, with K, M, G, T for powers of 1024 (`4K`, `1MiB`).
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let config = Config::new().with_binary();
    match config.parse_size(text) {
        Ok(0) => Err("must be larger than 0".to_string()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(no_size(&error, "a number of bytes, or such as 4K, 1M")),
    }
}

/// Why a text is no size.
fn no_size(error: &parse_size::Error, form: &str) -> String {
    match error {
        parse_size::Error::InvalidDigit | parse_size::Error::Empty => format!("must be {form}"),
        error => format!("{error} ({form})"),
    }
}

/// A capacity on the command line: bytes, with kB, MB, GB, TB for powers of 1000 as makers count (`10TB`, `9.1GB`).
pub(crate) fn parse_capacity(text: &str) -> Result<u64, String> {
    match Config::new().with_decimal().parse_size(text) {
        Ok(0) => Err("must be larger than 0".to_string()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(no_size(&error, "a number of bytes, or such as 500GB, 10TB")),
    }
}

/// A number of requests, a seed or the like on the command line.
pub(crate) fn parse_whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}

pub(crate) fn sectors(bytes: u64, spec: &DriveSpec) -> Result<u32, String> {
    let sector = u64::from(spec.sector_bytes);
    if !bytes.is_multiple_of(sector) {
        return Err(format!(
            "{bytes} bytes are no whole number of {}'s sectors of {sector} bytes",
            spec.name
        ));
    }
    u32::try_from(bytes / sector).map_err(|_| format!("{bytes} bytes are too many for one request"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_print_in_decimal_units() {
        assert_eq!(capacity(512), "512 B");
        assert_eq!(capacity(9_100_000_000), "9.10 GB");
        assert_eq!(capacity(300_000_000_000), "300 GB");
        assert_eq!(capacity(999_900_000_000), "1.00 TB");
    }

    #[test]
    fn memory_prints_in_binary_units() {
        assert_eq!(memory(0), "0 B");
        assert_eq!(memory(8 << 20), "8 MiB");
        assert_eq!(memory((8 << 20) - 4096), "8.00 MiB");
        assert_eq!(memory(1_500_000), "1.43 MiB");
        assert_eq!(memory(1000 << 10), "0.977 MiB");
    }

    #[test]
    fn size_suffixes_parse_as_powers_of_two() {
        assert_eq!(parse_bytes("4K"), Ok(4096));
        assert_eq!(parse_bytes("4k"), Ok(4096));
        assert_eq!(parse_bytes("1M"), Ok(1 << 20));
        assert_eq!(parse_bytes("1MiB"), Ok(1 << 20));
        assert_eq!(parse_bytes("512"), Ok(512));
        assert!(parse_bytes("0").is_err());
        assert!(parse_bytes("-4K").is_err());
        assert!(parse_bytes("four").is_err());
    }

    #[test]
    fn capacity_suffixes_parse_as_powers_of_1000() {
        assert_eq!(parse_capacity("10TB"), Ok(10_000_000_000_000));
        assert_eq!(parse_capacity("9.1GB"), Ok(9_100_000_000));
        assert_eq!(parse_capacity("1GiB"), Ok(1 << 30));
        assert!(parse_capacity("0").is_err());
        assert!(parse_capacity("big").is_err());
    }

    #[test]
    fn numbers_round_to_significant_digits() {
        assert_eq!(significant(2.71999, 3), "2.72");
        assert_eq!(significant(31415.9, 3), "31416");
        assert_eq!(significant(0.001234, 2), "0.0012");
        assert_eq!(significant(0.0, 3), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(999), "999");
    }
}
