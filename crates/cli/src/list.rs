//! Lists of what is shipped.

use crate::failure::Failure;
use crate::report::Table;
use serde::Serialize;
use std::io::Write;

/// Writes a list as a JSON array, or as a table with a title and columns.
pub(crate) fn write<T: Serialize, const COLUMNS: usize>(
    entries: &[T],
    json: bool,
    (title, columns): (&str, [&str; COLUMNS]),
    row: impl Fn(&T) -> [String; COLUMNS],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if json {
        let text = serde_json::to_string_pretty(entries).expect("a list is JSON");
        writeln!(out, "{text}")?;
        return Ok(());
    }
    let mut table = Table::new(title, &columns);
    table.words = 3;
    for entry in entries {
        table.row(row(entry));
    }
    write!(out, "{}", table.to_text())?;
    Ok(())
}
