//! What was published, row by row, and how a run compares with it.
//!
//! `studies/<id>/expect.tsv` holds one figure a line in six columns parted by tabs: metric, kind, value, tolerance, unit,
//! source. The first line names the columns; empty lines and lines that begin with `#` are passed over. A row is met
//! when the measured value lies within its tolerance; a row whose metric was not measured is a miss.

use std::fmt;
use thiserror::Error;

/// The names of the columns, as the first line has them.
pub const COLUMNS: [&str; 6] = ["metric", "kind", "value", "tolerance", "unit", "source"];

/// How a measured value is held against the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Off by no more than this share of the published value.
    Relative,
    /// Off by no more than this, in the row's unit.
    Absolute,
    /// No more than the published value and the tolerance, a share of it.
    AtMost,
    /// No less than the published value less the tolerance, a share of it.
    AtLeast,
}

impl Kind {
    const ALL: [(&str, Kind); 4] = [
        ("relative", Kind::Relative),
        ("absolute", Kind::Absolute),
        ("at-most", Kind::AtMost),
        ("at-least", Kind::AtLeast),
    ];

    /// The kind's name in a file.
    pub fn name(self) -> &'static str {
        Kind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// A published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// What was measured: the name that the study gives its own value.
    pub metric: String,
    /// How the two are compared.
    pub kind: Kind,
    /// The published value.
    pub value: f64,
    /// How far a value may be off: a share, or for [`Kind::Absolute`] in the unit.
    pub tolerance: f64,
    /// Unit of the value.
    pub unit: String,
    /// Where it was published.
    pub source: String,
    /// Line in the file, counted from 1.
    pub line: usize,
}

/// What is wrong with a line of expectations.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The first line does not name the columns.
    #[error("the columns are {}, in this order and parted by tabs", COLUMNS.join(", "))]
    Header,
    /// Not six columns.
    #[error("{found} columns, where 6 parted by tabs are needed")]
    Columns {
        /// The number met.
        found: usize,
    },
    /// A column that must not be empty is.
    #[error("{column} is empty")]
    Empty {
        /// The column.
        column: &'static str,
    },
    /// No such kind.
    #[error("`{found}` is no kind (relative, absolute, at-most or at-least)")]
    Kind {
        /// The word met.
        found: String,
    },
    /// Not a finite number, or a negative tolerance.
    #[error("{column}: `{found}` is no {}", if *.column == "value" { "number" } else { "number from 0 on" })]
    Number {
        /// The column.
        column: &'static str,
        /// The text met.
        found: String,
    },
    /// The metric stands on an earlier line too.
    #[error("{metric} stands on line {first} already")]
    Repeated {
        /// The metric.
        metric: String,
        /// The line it stands on first.
        first: usize,
    },
}

/// Why a file of expectations was refused. Displays as one line: `file:line: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{origin}:{line}: {fault}")]
pub struct ExpectError {
    /// The file the text came from.
    pub origin: String,
    /// Line in it, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub fault: Fault,
}

/// Reads expectations. `origin` (the file's name) goes into errors.
///
/// *Errors:* the first fault found, with its line.
pub fn parse(text: &str, origin: &str) -> Result<Vec<Expected>, ExpectError> {
    let refuse = |line, fault| ExpectError { origin: origin.to_string(), line, fault };
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end_matches('\r')));
    let mut lines = lines.by_ref().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    match lines.next() {
        Some((_, line)) if line.split('\t').eq(COLUMNS) => {}
        other => return Err(refuse(other.map_or(1, |(number, _)| number), Fault::Header)),
    }
    let mut rows: Vec<Expected> = Vec::new();
    for (number, line) in lines {
        let row = parse_row(line, number).map_err(|fault| refuse(number, fault))?;
        if let Some(earlier) = rows.iter().find(|earlier| earlier.metric == row.metric) {
            let fault = Fault::Repeated { metric: row.metric, first: earlier.line };
            return Err(refuse(number, fault));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn parse_row(text: &str, line: usize) -> Result<Expected, Fault> {
    let cells: Vec<&str> = text.split('\t').map(str::trim).collect();
    let [metric, kind, value, tolerance, unit, source] = cells[..] else {
        return Err(Fault::Columns { found: cells.len() });
    };
    if let Some(empty) = cells.iter().position(|cell| cell.is_empty()) {
        return Err(Fault::Empty { column: COLUMNS[empty] });
    }
    let found = kind;
    let known = Kind::ALL.iter().find(|(name, _)| *name == found);
    let (_, kind) = *known.ok_or_else(|| Fault::Kind { found: found.to_string() })?;
    Ok(Expected {
        metric: metric.to_string(),
        kind,
        value: number(COLUMNS[2], value, f64::MIN)?,
        tolerance: number(COLUMNS[3], tolerance, 0.0)?,
        unit: unit.to_string(),
        source: source.to_string(),
        line,
    })
}

fn number(column: &'static str, text: &str, least: f64) -> Result<f64, Fault> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= least);
    number.ok_or_else(|| Fault::Number { column, found: text.to_string() })
}

impl Expected {
    /// Whether a measured value meets this row.
    pub fn is_met_by(&self, measured: f64) -> bool {
        let room = match self.kind {
            Kind::Absolute => self.tolerance,
            _ => self.tolerance * self.value.abs(),
        };
        match self.kind {
            Kind::Relative | Kind::Absolute => (measured - self.value).abs() <= room,
            Kind::AtMost => measured <= self.value + room,
            Kind::AtLeast => measured >= self.value - room,
        }
    }

    fn tolerance_text(&self) -> String {
        match self.kind {
            Kind::Relative => format!("±{:.0} %", self.tolerance * 100.0),
            Kind::Absolute => format!("±{}", self.tolerance),
            Kind::AtMost => format!("≤, +{:.0} %", self.tolerance * 100.0),
            Kind::AtLeast => format!("≥, -{:.0} %", self.tolerance * 100.0),
        }
    }
}

/// A value that a study measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The metric's name.
    pub metric: String,
    /// Its value, in the unit of its row.
    pub value: f64,
}

impl Measured {
    /// A value under its name.
    pub fn new(metric: impl Into<String>, value: f64) -> Measured {
        Measured { metric: metric.into(), value }
    }
}

/// A row with what was measured for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The published figure.
    pub expected: Expected,
    /// The study's own; none when it did not measure that metric.
    pub measured: Option<f64>,
}

impl Judged {
    /// Whether the figure is met.
    pub fn is_met(&self) -> bool {
        self.measured.is_some_and(|value| self.expected.is_met_by(value))
    }
}

/// Published figures beside measured ones. Displays as a table, a line a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The rows, in the file's order.
    pub rows: Vec<Judged>,
    /// Metrics that were measured and have no row.
    pub unexpected: Vec<Measured>,
}

impl Report {
    /// Holds what was measured against what was published.
    pub fn new(expected: Vec<Expected>, measured: &[Measured]) -> Report {
        let value_of = |metric: &str| measured.iter().find(|m| m.metric == metric).map(|m| m.value);
        let has_row = |m: &&Measured| expected.iter().any(|row| row.metric == m.metric);
        let unexpected = measured.iter().filter(|m| !has_row(m)).cloned().collect();
        let judge = |expected: Expected| Judged { measured: value_of(&expected.metric), expected };
        Report { rows: expected.into_iter().map(judge).collect(), unexpected }
    }

    /// The rows that are not met.
    pub fn misses(&self) -> impl Iterator<Item = &Judged> {
        self.rows.iter().filter(|row| !row.is_met())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.expected.metric.len()).max().unwrap_or(0).max(6);
        let heading = ("metric", "published", "here", "off", "allowed");
        writeln!(
            f,
            "{:width$} {:>12} {:>12} {:>8} {:>10}",
            heading.0, heading.1, heading.2, heading.3, heading.4
        )?;
        for row in &self.rows {
            let (published, allowed) = (row.expected.value, row.expected.tolerance_text());
            write!(f, "{:width$} {published:>12.2} ", row.expected.metric)?;
            match row.measured {
                Some(value) if published != 0.0 => {
                    write!(f, "{value:>12.2} {:>+6.1} %", (value / published - 1.0) * 100.0)?;
                }
                Some(value) => write!(f, "{value:>12.2} {:>8}", "")?,
                None => write!(f, "{:>12} {:>8}", "not measured", "")?,
            }
            let verdict = if row.is_met() { "met" } else { "MISSED" };
            writeln!(f, " {allowed:>10}  {verdict:6} {}", row.expected.unit)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "metric\tkind\tvalue\ttolerance\tunit\tsource\n";

    fn fault(lines: &str) -> (usize, Fault) {
        let error = parse(&format!("{HEADER}{lines}"), "x.tsv").expect_err("the text is bad");
        (error.line, error.fault)
    }

    #[test]
    fn is_a_row_read_with_all_its_columns() {
        let text =
            format!("# what follows\n\n{HEADER}iops\trelative\t57.6\t0.1\t1/s\tmeasured: one drive\r\n");
        let rows = parse(&text, "x.tsv").expect("the text is good");
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        assert_eq!(
            (row.metric.as_str(), row.kind, row.value, row.tolerance),
            ("iops", Kind::Relative, 57.6, 0.1)
        );
        assert_eq!((row.unit.as_str(), row.source.as_str(), row.line), ("1/s", "measured: one drive", 4));
    }

    #[test]
    fn does_an_error_name_the_line() {
        assert_eq!(
            parse("metric\tvalue\n", "x.tsv").expect_err("no").to_string().split(": ").next(),
            Some("x.tsv:1")
        );
        assert_eq!(parse("", "x.tsv").expect_err("no").fault, Fault::Header);
        assert_eq!(fault("a\tb\n"), (2, Fault::Columns { found: 2 }));
        assert_eq!(fault("# c\na\tnear\t1\t0\ts\tb\n"), (3, Fault::Kind { found: "near".to_string() }));
        assert_eq!(fault("a\trelative\t1\t0\t\tb\n"), (2, Fault::Empty { column: "unit" }));
        let number = |column, found: &str| Fault::Number { column, found: found.to_string() };
        assert_eq!(fault("a\trelative\tinf\t0\ts\tb\n"), (2, number("value", "inf")));
        assert_eq!(fault("a\trelative\t1\t-1\ts\tb\n"), (2, number("tolerance", "-1")));
        let twice = "a\trelative\t1\t0\ts\tb\na\trelative\t1\t0\ts\tb\n";
        assert_eq!(fault(twice), (3, Fault::Repeated { metric: "a".to_string(), first: 2 }));
    }

    #[test]
    fn does_each_kind_stop_at_its_limit() {
        let row = |kind, value, tolerance| Expected {
            metric: "m".to_string(),
            kind,
            value,
            tolerance,
            unit: "s".to_string(),
            source: "s".to_string(),
            line: 1,
        };
        let met = |kind, value, tolerance, measured| row(kind, value, tolerance).is_met_by(measured);
        assert!(met(Kind::Relative, 100.0, 0.05, 105.0) && !met(Kind::Relative, 100.0, 0.05, 105.1));
        assert!(met(Kind::Relative, -100.0, 0.05, -95.0) && !met(Kind::Relative, -100.0, 0.05, -94.9));
        assert!(met(Kind::Absolute, 100.0, 0.5, 99.5) && !met(Kind::Absolute, 100.0, 0.5, 99.4));
        assert!(met(Kind::AtMost, 10.0, 0.1, 11.0) && !met(Kind::AtMost, 10.0, 0.1, 11.1));
        assert!(met(Kind::AtLeast, 10.0, 0.1, 9.0) && !met(Kind::AtLeast, 10.0, 0.1, 8.9));
        assert!(!met(Kind::AtMost, 10.0, 0.1, f64::NAN) && !met(Kind::Relative, 10.0, 0.1, f64::NAN));
    }

    #[test]
    fn is_a_metric_without_a_measurement_a_miss() {
        let rows = parse(&format!("{HEADER}a\trelative\t1\t0\ts\tb\nc\trelative\t2\t0\ts\tb\n"), "x.tsv");
        let measured = [Measured::new("c", 2.0), Measured::new("d", 3.0)];
        let report = Report::new(rows.expect("the text is good"), &measured);
        assert_eq!(report.misses().map(|row| row.expected.metric.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(report.unexpected, [Measured::new("d", 3.0)]);
        assert!(report.to_string().contains("not measured"));
    }
}
