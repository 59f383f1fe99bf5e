//! The published figures, row by row, and how a study's own value is compared with each.
//!
//! `studies/<id>/expect.tsv` holds one figure per line in ten columns separated by tabs: metric, what, kind, value, tolerance, unit,
//! source, basis, first_run, reason. The first line names the columns; empty lines and lines that begin with `#` are skipped. The reason
//! may be left out with its tab. A row of the kind `not-comparable` is shown and not judged: its reason says why, its tolerance is `-`, and
//! so is its value where none was published.
//!
//! `basis` says where the value comes from: `published`; `calibrated` for a published figure from which a parameter of the model, drive
//! file or study was taken; `ours` for a goal or check of the project's own. A value that meets one of the last two proves no agreement
//! with anything published: its verdict is `held`, not `pass`. `first_run` is the study's own value in its first run, if the model, the
//! drive file or the row's method was changed after that run. It is `-` if nothing was changed or if the first value was not kept.

use thiserror::Error;

/// The names of the columns, as they stand in the first line.
pub const COLUMNS: [&str; 10] =
    ["metric", "what", "kind", "value", "tolerance", "unit", "source", "basis", "first_run", "reason"];

/// The entry of an empty column.
const NOTHING: &str = "-";

/// How a study's value is compared with the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It may differ by this share of the published value.
    Relative,
    /// It may differ by this amount, in the row's unit.
    Absolute,
    /// An upper bound: at most the published value plus the tolerance, which is a share of that value.
    AtMost,
    /// A lower bound: at least the published value minus the tolerance, which is a share of that value.
    AtLeast,
    /// It is not compared.
    NotComparable,
}

impl Kind {
    const ALL: [(&str, Kind); 5] = [
        ("relative", Kind::Relative),
        ("absolute", Kind::Absolute),
        ("at-most", Kind::AtMost),
        ("at-least", Kind::AtLeast),
        ("not-comparable", Kind::NotComparable),
    ];

    /// The kind's name in a file.
    pub fn name(self) -> &'static str {
        Kind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// Where the figure of a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Published by others, and used for no parameter.
    Published,
    /// Published by others, and a parameter was taken from it.
    Calibrated,
    /// A goal of the project's own, or a check that the project computed.
    Ours,
}

impl Basis {
    const ALL: [(&str, Basis); 3] =
        [("published", Basis::Published), ("calibrated", Basis::Calibrated), ("ours", Basis::Ours)];

    /// The basis's name in a file.
    pub fn name(self) -> &'static str {
        Basis::ALL.iter().find(|(_, basis)| *basis == self).map_or("", |(name, _)| name)
    }
}

/// A figure with which a study's value is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The name of the metric, under which the study reports its own value.
    pub metric: String,
    /// What the metric is, in words.
    pub what: String,
    /// How the two are compared.
    pub kind: Kind,
    /// The published value; `None` in some rows that are not comparable.
    pub value: Option<f64>,
    /// How far a value may be off: a share, or an amount in the row's unit for [`Kind::Absolute`].
    pub tolerance: f64,
    /// Unit of the value.
    pub unit: String,
    /// Where it was published.
    pub source: String,
    /// Where the figure comes from.
    pub basis: Basis,
    /// The study's own value in its first run, in `unit`, where something was changed after that run.
    pub first_run: Option<f64>,
    /// Why it cannot be compared; in a row of another kind, what is known about the difference.
    pub reason: Option<String>,
    /// Line in the file, counted from 1.
    pub line: usize,
}

/// Why a file of expectations was refused. Displays as one line: `file:line: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{origin}:{line}: {fault}")]
pub struct ExpectError {
    /// The file the text came from.
    pub origin: String,
    /// Line in that file, counted from 1.
    pub line: usize,
    /// What is wrong there: the value met, and what is allowed.
    pub fault: String,
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
        other => {
            let fault =
                format!("the columns are {}, in this order and separated by tabs", COLUMNS.join(", "));
            return Err(refuse(other.map_or(1, |(number, _)| number), fault));
        }
    }
    let mut rows: Vec<Expected> = Vec::new();
    for (number, line) in lines {
        let row = parse_row(line, number).map_err(|fault| refuse(number, fault))?;
        if let Some(earlier) = rows.iter().find(|earlier| earlier.metric == row.metric) {
            return Err(refuse(number, format!("{} is on line {}, too", row.metric, earlier.line)));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn parse_row(text: &str, line: usize) -> Result<Expected, String> {
    let cells: Vec<&str> = text.split('\t').map(str::trim).collect();
    let (required, reason) = match &cells[..] {
        [required @ .., reason] if cells.len() == COLUMNS.len() => (required, *reason),
        required => (required, ""),
    };
    let &[metric, what, kind, value, tolerance, unit, source, basis, first_run] = required else {
        return Err(format!("{} columns, where 9 or 10 separated by tabs are needed", cells.len()));
    };
    if let Some(empty) = cells.iter().take(COLUMNS.len() - 1).position(|cell| cell.is_empty()) {
        return Err(format!("{} is empty", COLUMNS[empty]));
    }
    let known = Kind::ALL.iter().find(|(name, _)| *name == kind);
    let kinds = "relative, absolute, at-most, at-least or not-comparable";
    let (_, kind) = *known.ok_or_else(|| format!("`{kind}` is no kind ({kinds})"))?;
    let known = Basis::ALL.iter().find(|(name, _)| *name == basis);
    let (_, basis) =
        *known.ok_or_else(|| format!("`{basis}` is no basis (published, calibrated or ours)"))?;
    let judged = kind != Kind::NotComparable;
    if !judged && tolerance != NOTHING {
        return Err(format!("tolerance: `{tolerance}`, where a row that is not comparable has `-`"));
    }
    if !judged && reason.is_empty() {
        return Err("a row that is not comparable needs a reason".to_string());
    }
    let known = judged || value != NOTHING;
    Ok(Expected {
        metric: metric.to_string(),
        what: what.to_string(),
        kind,
        value: known.then(|| number(COLUMNS[3], value, f64::MIN)).transpose()?,
        tolerance: if judged { number(COLUMNS[4], tolerance, 0.0)? } else { 0.0 },
        unit: unit.to_string(),
        source: source.to_string(),
        basis,
        first_run: (first_run != NOTHING).then(|| number(COLUMNS[8], first_run, f64::MIN)).transpose()?,
        reason: Some(reason).filter(|reason| !reason.is_empty()).map(str::to_string),
        line,
    })
}

fn number(column: &str, text: &str, least: f64) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= least);
    let allowed = if least < 0.0 { "number" } else { "number from 0 on" };
    number.ok_or_else(|| format!("{column}: `{text}` is no {allowed}"))
}

impl Expected {
    /// How far a value may be off, in the row's unit; `None` where the row is not judged.
    pub fn room(&self) -> Option<f64> {
        match self.kind {
            Kind::NotComparable => None,
            Kind::Absolute => Some(self.tolerance),
            _ => Some(self.tolerance * self.value?.abs()),
        }
    }

    /// Whether a study's value meets this row; no value meets a row that is not judged.
    pub fn is_met_by(&self, ours: f64) -> bool {
        let (Some(published), Some(room)) = (self.value, self.room()) else { return false };
        match self.kind {
            Kind::Relative | Kind::Absolute => (ours - published).abs() <= room,
            Kind::AtMost => ours <= published + room,
            Kind::AtLeast => ours >= published - room,
            Kind::NotComparable => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "metric\twhat\tkind\tvalue\ttolerance\tunit\tsource\tbasis\tfirst_run\treason\n";

    fn fault(lines: &str) -> (usize, String) {
        let error = parse(&format!("{HEADER}{lines}"), "x.tsv").expect_err("the text is bad");
        (error.line, error.fault)
    }

    #[test]
    fn row_is_parsed_with_all_its_columns() {
        let text = format!(
            "# what follows\n\n{HEADER}iops\trate at depth 1\trelative\t57.6\t0.1\t1/s\tmeasured: one drive\tours\t61.5\r\n"
        );
        let rows = parse(&text, "x.tsv").expect("the text is good");
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        assert_eq!(
            (row.metric.as_str(), row.kind, row.value, row.tolerance),
            ("iops", Kind::Relative, Some(57.6), 0.1)
        );
        assert_eq!((row.unit.as_str(), row.source.as_str(), row.line), ("1/s", "measured: one drive", 4));
        assert_eq!((row.what.as_str(), &row.reason), ("rate at depth 1", &None));
        assert_eq!((row.basis, row.first_run), (Basis::Ours, Some(61.5)));
    }

    #[test]
    fn row_that_is_not_comparable_needs_a_reason() {
        let text = format!(
            "{HEADER}a\tw\tnot-comparable\t-\t-\ts\tb\tpublished\t-\tno value\nc\tw\tnot-comparable\t3\t-\ts\tb\tpublished\t-\tother disk\n"
        );
        let rows = parse(&text, "x.tsv").expect("the text is good");
        assert_eq!((rows[0].value, rows[0].reason.as_deref()), (None, Some("no value")));
        assert_eq!((rows[1].value, rows[1].room()), (Some(3.0), None));
        assert!(!rows[1].is_met_by(3.0));
        for (row, expected) in [
            ("3\t0.1\ts\tb\tpublished\t-\tc", "tolerance: `0.1`, where a row that is not comparable has `-`"),
            ("3\t-\ts\tb\tpublished\t-", "a row that is not comparable needs a reason"),
        ] {
            assert_eq!(fault(&format!("a\tw\tnot-comparable\t{row}\n")), (2, expected.to_string()));
        }
        let relative = fault("a\tw\trelative\t-\t0.1\ts\tb\tpublished\t-\n");
        assert_eq!(relative, (2, "value: `-` is no number".to_string()));
    }

    #[test]
    fn malformed_row_is_rejected_with_its_line() {
        let header = |text: &str| parse(text, "x.tsv").expect_err("the header is bad").to_string();
        assert!(header("metric\tvalue\n").starts_with("x.tsv:1: the columns are metric, what, kind"));
        assert!(header("").starts_with("x.tsv:1: the columns are metric"));
        let row = "a\tw\trelative\t1\t0\ts\tb\tours\t-\n";
        for (lines, line, expected) in [
            ("a\tb\n", 2, "2 columns, where 9 or 10 separated by tabs are needed"),
            (
                "# c\na\tw\tnear\t1\t0\ts\tb\tpublished\t-\n",
                3,
                "`near` is no kind (relative, absolute, at-most, at-least or not-comparable)",
            ),
            (&row.replace("ours", "theirs"), 2, "`theirs` is no basis (published, calibrated or ours)"),
            (&row.replace("\ts\t", "\t\t"), 2, "unit is empty"),
            (&row.replace("\t1\t", "\tinf\t"), 2, "value: `inf` is no number"),
            (&row.replace("\t0\t", "\t-1\t"), 2, "tolerance: `-1` is no number from 0 on"),
            (&row.repeat(2), 3, "a is on line 2, too"),
        ] {
            assert_eq!(fault(lines), (line, expected.to_string()));
        }
    }

    #[test]
    fn every_kind_of_row_ends_at_its_tolerance() {
        let met = |kind: Kind, value: f64, tolerance: f64, ours| {
            let row = format!("{HEADER}m\tw\t{}\t{value}\t{tolerance}\ts\ts\tpublished\t-\n", kind.name());
            parse(&row, "x.tsv").expect("the text is good")[0].is_met_by(ours)
        };
        assert!(met(Kind::Relative, 100.0, 0.05, 105.0) && !met(Kind::Relative, 100.0, 0.05, 105.1));
        assert!(met(Kind::Relative, -100.0, 0.05, -95.0) && !met(Kind::Relative, -100.0, 0.05, -94.9));
        assert!(met(Kind::Absolute, 100.0, 0.5, 99.5) && !met(Kind::Absolute, 100.0, 0.5, 99.4));
        assert!(met(Kind::AtMost, 10.0, 0.1, 11.0) && !met(Kind::AtMost, 10.0, 0.1, 11.1));
        assert!(met(Kind::AtLeast, 10.0, 0.1, 9.0) && !met(Kind::AtLeast, 10.0, 0.1, 8.9));
        assert!(!met(Kind::AtMost, 10.0, 0.1, f64::NAN) && !met(Kind::Relative, 10.0, 0.1, f64::NAN));
    }
}
