//! A trace of any format, read one record at a time.

use std::io::Read;

use super::error::{Fault, Place, TraceError};
use super::{ColumnNames, Encoding, Format, Header, Record, Source, all, packed, table};

/// Bytes at the head of a trace from which its format is recognised.
const HEAD: usize = 4096;

/// Requests that a program supplies. They have no place in a file; errors of a replay count them.
struct RecordSource<I> {
    records: I,
}

impl<I: Iterator<Item = Record>> Source for RecordSource<I> {
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        Ok(self.records.next())
    }

    fn position(&self) -> Place {
        Place::Whole
    }
}

/// An input that is said to be a Parquet file, and is none.
struct NoParquet;

impl Source for NoParquet {
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        Err(Fault::Header { what: "is not that of a Parquet file" })
    }

    fn position(&self) -> Place {
        Place::Whole
    }
}

/// A trace of any format. It holds one record and some buffers, however long it is.
pub struct Trace<'a> {
    file: String,
    format: &'static Format,
    source: Box<dyn Source + 'a>,
    patience: u64,
    skipped: u64,
    first_skipped: Option<TraceError>,
    done: bool,
}

impl<'a> Trace<'a> {
    /// Opens the trace in `input`, compressed or not. `file` names it in errors. Without a `format` it is recognised by the
    /// trace's first bytes.
    ///
    /// *Errors:* the input cannot be read, or no format matches.
    pub fn open(
        input: impl Read + 'a,
        file: &str,
        format: Option<&'static Format>,
    ) -> Result<Trace<'a>, TraceError> {
        Trace::open_with_columns(input, file, format, &ColumnNames::default())
    }

    /// As [`Trace::open`], a table whose columns have own names.
    ///
    /// *Errors:* also a table without such a column.
    pub fn open_with_columns(
        input: impl Read + 'a,
        file: &str,
        format: Option<&'static Format>,
        columns: &ColumnNames,
    ) -> Result<Trace<'a>, TraceError> {
        let fault = |fault| TraceError { file: file.to_string(), place: Place::Whole, fault };
        let packed::Unpacked { mut input, is_parquet } =
            packed::unpack(input).map_err(|error| fault(error.into()))?;
        if !columns.is_empty() {
            let wrong = |error: std::io::Error| match error.kind() {
                std::io::ErrorKind::InvalidInput => {
                    let fault = Fault::UnknownFormat(error.to_string());
                    TraceError { file: file.to_string(), place: Place::Line(1), fault }
                }
                _ => fault(error.into()),
            };
            input = columns.apply(input).map_err(wrong)?;
        }
        let (head, input) = packed::peek(input, HEAD).map_err(|error| fault(error.into()))?;
        let format = match format {
            Some(format) => format,
            None if is_parquet => of_columns(&head).map_err(fault)?,
            None => sniff(&head).map_err(fault)?,
        };
        let source: Box<dyn Source + 'a> = if format.name == PARQUET && !is_parquet {
            Box::new(NoParquet)
        } else {
            (format.read)(Box::new(input))
        };
        let file = file.to_string();
        Ok(Trace { file, format, source, patience: 0, skipped: 0, first_skipped: None, done: false })
    }

    /// A trace of the requests that a program supplies, for example as columns. `name` replaces the file's name in errors.
    pub fn from_records(records: impl Iterator<Item = Record> + 'a, name: &str) -> Trace<'a> {
        let (file, format) = (name.to_string(), &super::csv::FORMAT);
        let source = Box::new(RecordSource { records });
        Trace { file, format, source, patience: 0, skipped: 0, first_skipped: None, done: false }
    }

    /// The same trace, skipping up to `malformed` malformed lines or records instead of ending there.
    pub fn skipping(mut self, malformed: u64) -> Trace<'a> {
        self.patience = malformed;
        self
    }

    /// The next record; `None` at the end and after an error.
    ///
    /// *Errors:* the trace is malformed here, and no more may be skipped.
    pub fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        while !self.done {
            match self.source.next_record() {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => self.done = true,
                Err(fault) => {
                    let error = TraceError { file: self.file.clone(), place: self.source.position(), fault };
                    if error.fault.is_final() || self.patience == 0 {
                        self.done = true;
                        return Err(error);
                    }
                    self.patience -= 1;
                    self.skipped += 1;
                    self.first_skipped.get_or_insert(error);
                }
            }
        }
        Ok(None)
    }

    /// Its format.
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// Its file's name.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Its header, as far as it was read.
    pub fn header(&self) -> &Header {
        self.source.header()
    }

    /// Number of skipped malformed lines or records, and the first of them.
    pub fn skipped(&self) -> (u64, Option<&TraceError>) {
        (self.skipped, self.first_skipped.as_ref())
    }
}

impl Iterator for Trace<'_> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record().transpose()
    }
}

/// The name of the format of Parquet files.
const PARQUET: &str = "parquet";

/// The format of a Parquet file whose columns have these names.
fn of_columns(head: &[u8]) -> Result<&'static Format, Fault> {
    match table::missing_of(head) {
        Some(what) => Err(Fault::Header { what }),
        None => Ok(super::named(PARQUET).expect("Parquet files are recognised by programs that read them")),
    }
}

fn sniff(head: &[u8]) -> Result<&'static Format, Fault> {
    let like = |head: &[u8]| all().iter().find(|format| (format.sniff)(head));
    like(head).ok_or_else(|| {
        let second = head.iter().position(|byte| *byte == b'\n').map_or(head.len(), |end| end + 1);
        if let Some(format) = like(&head[second..]).filter(|format| format.encoding == Encoding::Text) {
            return Fault::UnknownFormat(format!(
                "the first line is no request, and the rest looks like {}: --format {} --skip-bad 1 passes over it",
                format.title, format.name
            ));
        }
        if let Some(missing) = table::missing(head) {
            return Fault::UnknownFormat(format!("the first line {missing}"));
        }
        let names: Vec<&str> = all().iter().map(|format| format.name).collect();
        Fault::UnknownFormat(format!("no known format begins like this; name one of {}", names.join(", ")))
    })
}
