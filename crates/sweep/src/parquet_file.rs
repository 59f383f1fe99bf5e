//! Tables of rows in Parquet files, without Arrow. *Source:* Apache Parquet format 2.

use crate::columns::HISTOGRAM;
use crate::table::{ColumnValues, SweepTable};
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

/// Columns that have a value in each row.
const REQUIRED: [&str; 4] = ["key", "rig", "load", "seed"];

/// Maximum number of rows of a row group.
const GROUP_ROWS: usize = 1 << 20;

#[cfg(feature = "zstd")]
fn compression() -> Compression {
    Compression::ZSTD(Default::default())
}

#[cfg(not(feature = "zstd"))]
fn compression() -> Compression {
    Compression::UNCOMPRESSED
}

fn column_type(name: &str, values: &ColumnValues) -> Result<TypePtr, ParquetError> {
    let (physical, kind) = match values {
        ColumnValues::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        ColumnValues::Whole(_) | ColumnValues::Lists(_) => (Physical::INT64, ConvertedType::NONE),
        ColumnValues::Unsigned(_) => (Physical::INT64, ConvertedType::UINT_64),
        ColumnValues::Real(_) => (Physical::DOUBLE, ConvertedType::NONE),
        ColumnValues::Flag(_) => (Physical::BOOLEAN, ConvertedType::NONE),
    };
    let repetition = match values {
        ColumnValues::Lists(_) => Repetition::REPEATED,
        _ if REQUIRED.contains(&name) => Repetition::REQUIRED,
        _ => Repetition::OPTIONAL,
    };
    let builder = Type::primitive_type_builder(name, physical);
    Ok(Arc::new(builder.with_repetition(repetition).with_converted_type(kind).build()?))
}

/// Writes a table, with texts by name in its footer. The same table gives the same bytes.
pub(crate) fn write(
    table: &SweepTable,
    texts: &[(&str, String)],
    out: &mut (impl Write + Send),
) -> Result<(), ParquetError> {
    let text = |(name, value): &(&str, String)| KeyValue::new((*name).to_string(), value.clone());
    let properties = WriterProperties::builder()
        .set_created_by("headstack".to_string())
        .set_compression(compression())
        .set_key_value_metadata(Some(texts.iter().map(text).collect()))
        .build();
    let fields = table.columns().map(|(name, values)| column_type(name, values));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("sweep").with_fields(fields).build()?);
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    for first in (0..table.rows().max(1)).step_by(GROUP_ROWS) {
        let rows = first..(first + GROUP_ROWS).min(table.rows());
        let mut group = file.next_row_group()?;
        for (name, values) in table.columns() {
            write_column(&mut group, values, rows.clone(), REQUIRED.contains(&name))?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &ColumnValues,
    rows: std::ops::Range<usize>,
    is_required: bool,
) -> Result<(), ParquetError> {
    match values {
        ColumnValues::Text(found) => {
            let bytes = |text: &Option<Arc<str>>| Some(ByteArray::from(text.as_ref()?.as_bytes().to_vec()));
            write_values::<ByteArrayType, W>(group, found[rows].iter().map(bytes), is_required)
        }
        ColumnValues::Whole(found) => {
            write_values::<Int64Type, W>(group, found[rows].iter().copied(), is_required)
        }
        // The column is unsigned, and Parquet keeps its bits in a signed number.
        ColumnValues::Unsigned(found) => {
            write_values::<Int64Type, W>(group, found[rows].iter().map(|one| Some(*one as i64)), is_required)
        }
        ColumnValues::Real(found) => {
            write_values::<DoubleType, W>(group, found[rows].iter().copied(), is_required)
        }
        ColumnValues::Flag(found) => {
            write_values::<BoolType, W>(group, found[rows].iter().copied(), is_required)
        }
        ColumnValues::Lists(found) => write_lists(group, &found[rows]),
    }
}

fn write_values<D: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl Iterator<Item = Option<D::T>>,
    is_required: bool,
) -> Result<(), ParquetError> {
    let all: Vec<Option<D::T>> = values.collect();
    let levels: Vec<i16> = all.iter().map(|value| i16::from(value.is_some())).collect();
    let found: Vec<D::T> = all.into_iter().flatten().collect();
    let mut column = group.next_column()?.expect("the schema has this column");
    column.typed::<D>().write_batch(&found, (!is_required).then_some(&levels), None)?;
    column.close()
}

/// A list for each row, which may be empty. *Source:* Parquet's definition and repetition levels: 0 at the first value of a row.
fn write_lists<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Vec<i64>],
) -> Result<(), ParquetError> {
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let length = row.len().max(1);
        defined.extend(std::iter::repeat_n(i16::from(!row.is_empty()), length));
        repeated.extend((0..length).map(|index| i16::from(index > 0)));
        values.extend(row);
    }
    let mut column = group.next_column()?.expect("the schema has this column");
    column.typed::<Int64Type>().write_batch(&values, Some(&defined), Some(&repeated))?;
    column.close()
}

/// A file of rows that is open for reading.
pub(crate) struct RowFile {
    reader: SerializedFileReader<File>,
}

impl RowFile {
    pub(crate) fn open(file: File) -> Result<RowFile, ParquetError> {
        Ok(RowFile { reader: SerializedFileReader::new(file)? })
    }

    /// A text of the footer.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let texts = self.reader.metadata().file_metadata().key_value_metadata()?;
        texts.iter().find(|text| text.key == name)?.value.as_deref()
    }

    /// All rows, with the columns of these names only, if any are named.
    pub(crate) fn table(&self, names: Option<&[&str]>) -> Result<SweepTable, ParquetError> {
        let metadata = self.reader.metadata().file_metadata();
        let fields = metadata.schema_descr().columns().iter().enumerate();
        let wanted = fields.filter(|(_, field)| names.is_none_or(|names| names.contains(&field.name())));
        let (mut columns, mut rows) = (Vec::new(), metadata.num_rows() as usize);
        for (place, field) in wanted {
            let name = field.name().to_string();
            let optional = field.max_def_level() > 0;
            let is_unsigned = field.converted_type() == ConvertedType::UINT_64;
            let values = self.column(place, optional, is_unsigned, HISTOGRAM.contains(&name.as_str()))?;
            rows = values.len();
            columns.push((name, values));
        }
        if columns.iter().any(|(_, values)| values.len() != rows) {
            return Err(ParquetError::General("columns of several lengths".to_string()));
        }
        Ok(SweepTable::of_columns(rows, columns))
    }

    fn column(
        &self,
        place: usize,
        optional: bool,
        is_unsigned: bool,
        is_list: bool,
    ) -> Result<ColumnValues, ParquetError> {
        let mut all: Option<ColumnValues> = None;
        for group in 0..self.reader.num_row_groups() {
            let group = self.reader.get_row_group(group)?;
            let rows = group.metadata().num_rows() as usize;
            let found = match group.get_column_reader(place)? {
                ColumnReader::ByteArrayColumnReader(reader) => {
                    ColumnValues::Text(texts(reader, rows, optional)?)
                }
                ColumnReader::Int64ColumnReader(reader) if is_list => {
                    ColumnValues::Lists(lists(reader, rows)?)
                }
                ColumnReader::Int64ColumnReader(reader) if is_unsigned => {
                    let found = values(reader, rows, optional)?.into_iter();
                    ColumnValues::Unsigned(found.map(|value| value.unwrap_or(0) as u64).collect())
                }
                ColumnReader::Int64ColumnReader(reader) => {
                    ColumnValues::Whole(values(reader, rows, optional)?)
                }
                ColumnReader::DoubleColumnReader(reader) => {
                    ColumnValues::Real(values(reader, rows, optional)?)
                }
                ColumnReader::BoolColumnReader(reader) => ColumnValues::Flag(values(reader, rows, optional)?),
                _ => {
                    return Err(ParquetError::General(
                        "a column of a type that rows do not have".to_string(),
                    ));
                }
            };
            match &mut all {
                None => all = Some(found),
                Some(all) => all.append(found),
            }
        }
        all.ok_or_else(|| ParquetError::General("no row group".to_string()))
    }
}

/// The values of a column of a row group, and none where a row has none.
fn values<D: DataType>(
    mut reader: ColumnReaderImpl<D>,
    rows: usize,
    optional: bool,
) -> Result<Vec<Option<D::T>>, ParquetError> {
    let (mut found, mut levels) = (Vec::new(), Vec::new());
    reader.read_records(rows, optional.then_some(&mut levels), None, &mut found)?;
    if !optional {
        return Ok(found.into_iter().map(Some).collect());
    }
    let mut found = found.into_iter();
    Ok(levels.into_iter().map(|level| if level == 0 { None } else { found.next() }).collect())
}

/// Texts, of which equal ones that follow each other share their memory.
fn texts(
    reader: ColumnReaderImpl<ByteArrayType>,
    rows: usize,
    optional: bool,
) -> Result<Vec<Option<Arc<str>>>, ParquetError> {
    let mut last: Option<Arc<str>> = None;
    let mut found = Vec::with_capacity(rows);
    for value in values(reader, rows, optional)? {
        let Some(value) = value else {
            found.push(None);
            continue;
        };
        let text = value.as_utf8()?;
        if last.as_deref() != Some(text) {
            last = Some(Arc::from(text));
        }
        found.push(last.clone());
    }
    Ok(found)
}

fn lists(mut reader: ColumnReaderImpl<Int64Type>, rows: usize) -> Result<Vec<Vec<i64>>, ParquetError> {
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    reader.read_records(rows, Some(&mut defined), Some(&mut repeated), &mut values)?;
    let (mut found, mut values): (Vec<Vec<i64>>, _) = (Vec::new(), values.into_iter());
    for (is_defined, is_repeated) in defined.into_iter().zip(repeated) {
        if is_repeated == 0 {
            found.push(Vec::new());
        }
        if is_defined > 0 {
            let row =
                found.last_mut().ok_or_else(|| ParquetError::General("a list without a row".to_string()))?;
            row.extend(values.next());
        }
    }
    Ok(found)
}
