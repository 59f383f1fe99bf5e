//! The rows of a Parquet file as text.

use std::fmt::{self, Write as _};
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, Int96};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

/// Rows that are read at once.
const BATCH: usize = 4096;

/// How a column's numbers are to be read.
#[derive(Clone, Copy)]
enum NumberUnit {
    Plain,
    Unsigned,
    /// As many of its units are a second.
    Timestamp(i64),
}

struct ParquetColumn {
    place: usize,
    name: String,
    reading: NumberUnit,
    optional: bool,
}

pub(super) struct ParquetRows {
    file: SerializedFileReader<Bytes>,
    columns: Vec<ParquetColumn>,
    /// The next row group.
    group: usize,
    readers: Vec<ColumnReader>,
    /// Rows of the present group that have not been read.
    left: usize,
    text: String,
    at: usize,
}

impl ParquetRows {
    /// The rows of a whole file.
    pub(super) fn open(bytes: Vec<u8>) -> io::Result<ParquetRows> {
        let file = guarded(|| SerializedFileReader::new(Bytes::from(bytes)))?;
        let described = file.metadata().file_metadata().schema_descr().columns().iter();
        let columns: Vec<ParquetColumn> =
            described.enumerate().filter_map(|(place, column)| column_of(place, column)).collect();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let text = names.join("\t") + "\n";
        Ok(ParquetRows { file, columns, group: 0, readers: Vec::new(), left: 0, text, at: 0 })
    }

    /// Reads the next batch of rows as text; none at the end.
    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.at = 0;
        while self.left == 0 {
            if self.group == self.file.num_row_groups() {
                return Ok(());
            }
            let group = guarded(|| self.file.get_row_group(self.group))?;
            self.left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            let places = self.columns.iter().map(|column| column.place);
            self.readers =
                guarded(|| places.map(|place| group.get_column_reader(place)).collect::<Result<_, _>>())?;
            self.group += 1;
        }
        let rows = self.left.min(BATCH);
        let mut cells = Vec::with_capacity(self.columns.len());
        for (column, reader) in self.columns.iter().zip(&mut self.readers) {
            let found = guarded(|| texts(reader, rows, column))?;
            if found.len() != rows {
                return Err(damaged("a column ends before the others"));
            }
            cells.push(found);
        }
        for row in 0..rows {
            for (index, column) in cells.iter().enumerate() {
                self.text.push_str(if index > 0 { "\t" } else { "" });
                self.text.push_str(&column[row]);
            }
            self.text.push('\n');
        }
        self.left -= rows;
        Ok(())
    }
}

impl Read for ParquetRows {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.text.len() {
            self.fill()?;
        }
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

fn damaged(error: impl fmt::Display) -> io::Error {
    let line = error.to_string().replace(char::is_control, " ");
    io::Error::new(io::ErrorKind::InvalidData, format!("the Parquet file is damaged: {line}"))
}

/// The result of a call of the library, which panics at some damaged files.
fn guarded<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> io::Result<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(damaged),
        Err(_) => Err(damaged("its reader gave up")),
    }
}

/// A column of single values of a type that is read; none for lists, structures, decimals and the like.
fn column_of(place: usize, column: &ColumnDescriptor) -> Option<ParquetColumn> {
    let is_flat = column.max_rep_level() == 0 && column.path().parts().len() == 1;
    let reading = match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(kind)), _) => NumberUnit::Timestamp(match kind.unit {
            TimeUnit::MILLIS => 1_000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        }),
        (_, ConvertedType::TIMESTAMP_MILLIS) => NumberUnit::Timestamp(1_000),
        (_, ConvertedType::TIMESTAMP_MICROS) => NumberUnit::Timestamp(1_000_000),
        (
            _,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64,
        ) => NumberUnit::Unsigned,
        (_, ConvertedType::DECIMAL | ConvertedType::INTERVAL | ConvertedType::BSON) => return None,
        _ => NumberUnit::Plain,
    };
    let name = column.name().replace(|letter: char| letter.is_control() || letter == '"', " ");
    is_flat.then(|| ParquetColumn { place, name, reading, optional: column.max_def_level() > 0 })
}

/// The next values of a column as text, empty where there is none.
fn texts(
    reader: &mut ColumnReader,
    rows: usize,
    column: &ParquetColumn,
) -> Result<Vec<String>, ParquetError> {
    let optional = column.optional;
    let reading = column.reading;
    match reader {
        ColumnReader::BoolColumnReader(reader) => {
            values(reader, rows, optional, |value| u8::from(*value).to_string())
        }
        ColumnReader::Int32ColumnReader(reader) => values(reader, rows, optional, |value| match reading {
            NumberUnit::Unsigned => (*value as u32).to_string(),
            NumberUnit::Plain | NumberUnit::Timestamp(_) => value.to_string(),
        }),
        ColumnReader::Int64ColumnReader(reader) => values(reader, rows, optional, |value| match reading {
            NumberUnit::Plain => value.to_string(),
            NumberUnit::Unsigned => (*value as u64).to_string(),
            NumberUnit::Timestamp(units) => seconds(*value, units),
        }),
        ColumnReader::Int96ColumnReader(reader) => {
            values(reader, rows, optional, |value: &Int96| seconds(value.to_nanos(), 1_000_000_000))
        }
        ColumnReader::FloatColumnReader(reader) => {
            values(reader, rows, optional, |value| real(f64::from(*value)))
        }
        ColumnReader::DoubleColumnReader(reader) => values(reader, rows, optional, |value| real(*value)),
        ColumnReader::ByteArrayColumnReader(reader) => {
            values(reader, rows, optional, |value: &ByteArray| word(value.data()))
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            values(reader, rows, optional, |value| word(value.data()))
        }
    }
}

fn values<D: DataType>(
    reader: &mut ColumnReaderImpl<D>,
    rows: usize,
    optional: bool,
    text: impl Fn(&D::T) -> String,
) -> Result<Vec<String>, ParquetError> {
    let (mut levels, mut found) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (records, _, _) =
            reader.read_records(rows - read, optional.then_some(&mut levels), None, &mut found)?;
        if records == 0 {
            break;
        }
        read += records;
    }
    if !optional {
        return Ok(found.iter().map(text).collect());
    }
    let mut found = found.iter();
    let cell = |level: &i16| if *level > 0 { found.next().map(&text) } else { None };
    Ok(levels.iter().map(cell).map(Option::unwrap_or_default).collect())
}

/// A number of units as seconds.
fn seconds(value: i64, units: i64) -> String {
    let digits = units.ilog10() as usize;
    let (whole, rest) = (value.div_euclid(units), value.rem_euclid(units));
    let mut text = String::new();
    write!(text, "{whole}.{rest:0digits$}").expect("a text takes all");
    text
}

/// A real number; one that is none, as pandas writes missing values, is nothing.
fn real(value: f64) -> String {
    if value.is_nan() { String::new() } else { value.to_string() }
}

/// A word without what separates values and lines.
fn word(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(|letter: char| letter.is_control() || letter == '"', " ")
}
