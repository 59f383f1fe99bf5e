//! Parquet: a table with named columns, as the CSV with named columns, in a file of columns.
//!
//! A file is read as the text of its rows, tabs between the values, so that columns are found, renamed and checked as those of any table. It is
//! held in memory, because its footer is at its end; its rows are read in batches. Columns of lists and structures are passed over. A value that
//! is not there is an empty one. A timestamp, whose type has the unit, is in seconds.
//!
//! *Source:* Apache Parquet format 2.

mod rows;
mod write;

use std::io::{self, BufRead, BufReader, Read};

use super::table::{self, TableReader};
use super::text::Lines;
use super::{Encoding, Format};

pub(super) const FORMAT: Format = Format {
    name: "parquet",
    title: "Parquet with named columns",
    extensions: &["parquet"],
    encoding: Encoding::Binary,
    form: "time_ns,device,op,offset,bytes,response_ns,process",
    note: "the columns are found by their names, as in `table`, and `--columns` gives names for others; a line of an error is a row, counted with the names as the first; timestamps are in seconds",
    carries: table::CARRIES,
    // Its text is recognised after it was unpacked.
    sniff: |_| false,
    read: |input| Box::new(TableReader::new(Lines::new(input))),
    write: || Box::new(write::RowWriter::default()),
};

/// The rows of a file as text, the names of the columns first.
///
/// *Errors:* the input cannot be read, or is damaged.
pub(super) fn unpack<'a>(mut input: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    Ok(Box::new(BufReader::new(rows::ParquetRows::open(bytes)?)))
}
