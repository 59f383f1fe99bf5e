//! Writes requests as the rows of a Parquet file.

use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::super::names::plain_name;
use super::super::{Encode, Header, Record};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 16;

/// Name, whether it is a word or a number, and whether each row has a value.
const COLUMNS: [(&str, bool, bool); 7] = [
    ("time_ns", false, true),
    ("device", true, true),
    ("op", true, true),
    ("offset", false, true),
    ("bytes", false, true),
    ("response_ns", false, false),
    ("process", false, false),
];

#[derive(Default)]
pub(super) struct RowWriter {
    /// The file; its bytes are moved to the output after each row group.
    file: Option<SerializedFileWriter<Vec<u8>>>,
    /// The requests of the next row group, each with its device's name.
    rows: Vec<(Record, ByteArray)>,
}

const IN_MEMORY: &str = "memory takes every row of this schema";

impl RowWriter {
    fn write_group(&mut self, out: &mut Vec<u8>) {
        let file = self.file.as_mut().expect("it begins before its rows");
        write_group(file, &self.rows).expect(IN_MEMORY);
        file.flush().expect(IN_MEMORY);
        out.append(file.inner_mut());
        self.rows.clear();
    }
}

impl Encode for RowWriter {
    fn begin(&mut self, _header: &Header, _out: &mut Vec<u8>) {
        self.file = Some(new_file().expect(IN_MEMORY));
    }

    fn record(&mut self, record: &Record, header: &Header, out: &mut Vec<u8>) {
        let name = match plain_name(header, record.device).filter(|name| !name.contains([';', '\t'])) {
            Some(name) => name.to_string(),
            None => format!("disk{}", record.device),
        };
        self.rows.push((*record, ByteArray::from(name.into_bytes())));
        if self.rows.len() == GROUP_ROWS {
            self.write_group(out);
        }
    }

    fn end(&mut self, _header: &Header, out: &mut Vec<u8>) {
        if !self.rows.is_empty() {
            self.write_group(out);
        }
        let file = self.file.take().expect("it begins before it ends");
        out.append(&mut file.into_inner().expect(IN_MEMORY));
    }
}

fn new_file() -> Result<SerializedFileWriter<Vec<u8>>, ParquetError> {
    let column = |(name, is_word, is_required): &(&str, bool, bool)| -> Result<TypePtr, ParquetError> {
        let (physical, kind) = if *is_word {
            (Physical::BYTE_ARRAY, ConvertedType::UTF8)
        } else {
            (Physical::INT64, ConvertedType::UINT_64)
        };
        let repetition = if *is_required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let builder = Type::primitive_type_builder(name, physical);
        Ok(Arc::new(builder.with_repetition(repetition).with_converted_type(kind).build()?))
    };
    let fields = COLUMNS.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("trace").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_created_by("headstack".to_string())
        .set_compression(compression())
        .build();
    SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))
}

#[cfg(feature = "zstd")]
fn compression() -> Compression {
    Compression::ZSTD(Default::default())
}

#[cfg(not(feature = "zstd"))]
fn compression() -> Compression {
    Compression::UNCOMPRESSED
}

fn write_group(
    file: &mut SerializedFileWriter<Vec<u8>>,
    rows: &[(Record, ByteArray)],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    let number = |of: fn(&Record) -> u64| rows.iter().map(|(record, _)| of(record) as i64).collect();
    let optional = |of: fn(&Record) -> Option<u64>| {
        rows.iter().map(|(record, _)| of(record).map(|value| value as i64)).collect()
    };
    let op = |record: &Record| ByteArray::from(record.kind.name().as_bytes().to_vec());
    required::<Int64Type>(&mut group, number(|record| record.time.0))?;
    required::<ByteArrayType>(&mut group, rows.iter().map(|(_, name)| name.clone()).collect())?;
    required::<ByteArrayType>(&mut group, rows.iter().map(|(record, _)| op(record)).collect())?;
    required::<Int64Type>(&mut group, number(|record| record.offset))?;
    required::<Int64Type>(&mut group, number(|record| record.bytes))?;
    some::<Int64Type>(&mut group, optional(|record| record.response.map(|response| response.0)))?;
    some::<Int64Type>(&mut group, optional(|record| record.source.map(u64::from)))?;
    group.close()?;
    Ok(())
}

type TraceRows<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

fn required<D: DataType>(group: &mut TraceRows<'_>, values: Vec<D::T>) -> Result<(), ParquetError> {
    write::<D>(group, &values, None)
}

fn some<D: DataType>(group: &mut TraceRows<'_>, values: Vec<Option<D::T>>) -> Result<(), ParquetError> {
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    write::<D>(group, &values.into_iter().flatten().collect::<Vec<_>>(), Some(&levels))
}

fn write<D: DataType>(
    group: &mut TraceRows<'_>,
    values: &[D::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has this column");
    column.typed::<D>().write_batch(values, levels, None)?;
    column.close()
}
