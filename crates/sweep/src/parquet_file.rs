//! Rows in a Parquet file, without Arrow. *Source:* Apache Parquet format 2.

use crate::columns::{COUNTS, FIGURES};
use crate::row::{FinishedCell, SweepRow};
use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::Field;
use parquet::schema::types::{Type, TypePtr};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

/// Columns with names: of the cell before its settings, and after them.
const KEY: &str = "key";
const RIG: &str = "rig";
const LOAD: &str = "load";
const SEED: &str = "seed";
const ERROR: &str = "error";
/// Columns of lists: the largest time of each bucket, and the requests in it.
const HISTOGRAM: [&str; 2] = ["histogram_ns", "histogram_requests"];

fn column(
    name: &str,
    physical: Physical,
    kind: ConvertedType,
    is_optional: bool,
) -> Result<TypePtr, ParquetError> {
    let repetition = if is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let builder = Type::primitive_type_builder(name, physical);
    Ok(Arc::new(builder.with_repetition(repetition).with_converted_type(kind).build()?))
}

fn text(name: &str, is_optional: bool) -> Result<TypePtr, ParquetError> {
    column(name, Physical::BYTE_ARRAY, ConvertedType::UTF8, is_optional)
}

fn schema(setting_keys: &[String], reported: &[&str], has_histograms: bool) -> Result<TypePtr, ParquetError> {
    let mut fields = vec![text(KEY, false)?, text(RIG, false)?, text(LOAD, false)?];
    for key in setting_keys {
        fields.push(text(key, true)?);
    }
    fields.push(column(SEED, Physical::INT64, ConvertedType::UINT_64, false)?);
    fields.push(text(ERROR, true)?);
    for (name, _) in COUNTS {
        fields.push(column(name, Physical::INT64, ConvertedType::NONE, true)?);
    }
    for name in FIGURES.iter().map(|(name, _)| name).chain(reported) {
        fields.push(column(name, Physical::DOUBLE, ConvertedType::NONE, true)?);
    }
    for name in HISTOGRAM.into_iter().filter(|_| has_histograms) {
        let builder = Type::primitive_type_builder(name, Physical::INT64);
        fields.push(Arc::new(builder.with_repetition(Repetition::REPEATED).build()?));
    }
    Ok(Arc::new(Type::group_type_builder("sweep").with_fields(fields).build()?))
}

/// The columns of what layers and devices counted in some row.
fn reported(rows: &[SweepRow]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &row.reported) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// Writes rows as one row group. The same rows give the same bytes.
pub(crate) fn write(
    rows: &[SweepRow],
    setting_keys: &[String],
    has_histograms: bool,
    out: &mut (impl Write + Send),
) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder().set_created_by("headstack".to_string()).build();
    let reported = reported(rows);
    let schema = schema(setting_keys, &reported, has_histograms)?;
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    texts(&mut group, rows.iter().map(|row| Some(row.key.as_str())), false)?;
    texts(&mut group, rows.iter().map(|row| Some(row.rig.as_str())), false)?;
    texts(&mut group, rows.iter().map(|row| Some(row.load.as_str())), false)?;
    for index in 0..setting_keys.len() {
        texts(&mut group, rows.iter().map(|row| row.settings[index].as_deref()), true)?;
    }
    // The column is unsigned, and Parquet keeps its bits in a signed number.
    counts(&mut group, rows.iter().map(|row| Some(row.seed as i64)), false)?;
    texts(&mut group, rows.iter().map(|row| row.error.as_deref()), true)?;
    for index in 0..COUNTS.len() {
        counts(&mut group, rows.iter().map(|row| row.counts[index]), true)?;
    }
    for index in 0..FIGURES.len() {
        figures(&mut group, rows.iter().map(|row| row.figures[index]))?;
    }
    for name in reported {
        let of = |row: &SweepRow| row.reported.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
        figures(&mut group, rows.iter().map(of))?;
    }
    if has_histograms {
        lists(&mut group, rows.iter().map(|row| row.histogram.iter().map(|(last, _)| *last).collect()))?;
        lists(&mut group, rows.iter().map(|row| row.histogram.iter().map(|(_, count)| *count).collect()))?;
    }
    group.close()?;
    file.close()?;
    Ok(())
}

/// A list for each row, which may be empty. *Source:* Parquet's definition and repetition levels: 0 at the first value of a row.
fn lists<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: impl Iterator<Item = Vec<i64>>,
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

/// The values that are there, and for each row whether it has one.
fn split<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
    let all: Vec<Option<T>> = values.collect();
    let levels = all.iter().map(|value| i16::from(value.is_some())).collect();
    (all.into_iter().flatten().collect(), levels)
}

fn texts<'a, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl Iterator<Item = Option<&'a str>>,
    is_optional: bool,
) -> Result<(), ParquetError> {
    let (values, levels) =
        split(values.map(|value| value.map(|text| ByteArray::from(text.as_bytes().to_vec()))));
    let mut column = group.next_column()?.expect("the schema has this column");
    column.typed::<ByteArrayType>().write_batch(&values, is_optional.then_some(&levels), None)?;
    column.close()
}

fn counts<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl Iterator<Item = Option<i64>>,
    is_optional: bool,
) -> Result<(), ParquetError> {
    let (values, levels) = split(values);
    let mut column = group.next_column()?.expect("the schema has this column");
    column.typed::<Int64Type>().write_batch(&values, is_optional.then_some(&levels), None)?;
    column.close()
}

fn figures<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl Iterator<Item = Option<f64>>,
) -> Result<(), ParquetError> {
    let (values, levels) = split(values);
    let mut column = group.next_column()?.expect("the schema has this column");
    column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

/// The key of each row of a file, its error, and its figure in a column.
pub(crate) fn read_keys(
    file: File,
    figure: Option<&str>,
) -> Result<Vec<(String, FinishedCell)>, ParquetError> {
    let mut fields = vec![text(KEY, false)?, text(ERROR, true)?];
    if let Some(name) = figure {
        fields.push(column(name, Physical::DOUBLE, ConvertedType::NONE, true)?);
    }
    let projection = Type::group_type_builder("sweep").with_fields(fields).build()?;
    let reader = SerializedFileReader::new(file)?;
    let mut found = Vec::new();
    for row in reader.get_row_iter(Some(projection))? {
        let (mut key, mut cell) = (None, FinishedCell::default());
        for (name, field) in row?.get_column_iter() {
            match (name.as_str(), field) {
                (KEY, Field::Str(text)) => key = Some(text.clone()),
                (ERROR, Field::Str(text)) => cell.error = Some(text.clone()),
                (_, Field::Double(number)) => cell.figure = Some(*number),
                _ => {}
            }
        }
        let key = key.ok_or_else(|| ParquetError::General("a row has no key".to_string()))?;
        found.push((key, cell));
    }
    Ok(found)
}

/// Each row of a file as its columns by name; absent values are null.
pub(crate) fn read_columns(file: File) -> Result<Vec<Map<String, Value>>, ParquetError> {
    let reader = SerializedFileReader::new(file)?;
    let value = |field: &Field| match field {
        Field::Str(text) => text.as_str().into(),
        Field::Long(whole) => (*whole).into(),
        Field::ULong(whole) => (*whole).into(),
        Field::Double(number) => (*number).into(),
        Field::ListInternal(list) => {
            let whole =
                |field: &Field| if let Field::Long(whole) = field { (*whole).into() } else { Value::Null };
            list.elements().iter().map(whole).collect()
        }
        _ => Value::Null,
    };
    let mut rows = Vec::new();
    for row in reader.get_row_iter(None)? {
        rows.push(row?.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect());
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    fn row(key: &str, order: Option<&str>, error: Option<&str>) -> SweepRow {
        SweepRow {
            key: key.to_string(),
            rig: "r".to_string(),
            load: "l".to_string(),
            settings: vec![order.map(str::to_string)],
            seed: u64::MAX,
            error: error.map(str::to_string),
            counts: [error.is_none().then_some(4); COUNTS.len()],
            figures: [error.is_none().then_some(0.1); FIGURES.len()],
            reported: order.map(|_| ("throttle_held".to_string(), 2.0)).into_iter().collect(),
            histogram: if error.is_none() { vec![(10, 3), (12, 1)] } else { Vec::new() },
        }
    }

    #[test]
    fn rows_read_back_as_they_were_written() {
        let keys = ["drive.order".to_string()];
        let rows = [row("a", Some("sptf"), None), row("b", None, Some("too deep"))];
        let mut file = tempfile::tempfile().expect("there is room for a file");
        write(&rows, &keys, true, &mut file).unwrap_or_else(|error| panic!("{error}"));
        let again = |file: &mut File| {
            file.rewind().expect("a file can be rewound");
            file.try_clone().expect("a file can be opened twice")
        };
        for column in [None, Some("p99_ms")] {
            let found = read_keys(again(&mut file), column).unwrap_or_else(|error| panic!("{error}"));
            let written = rows.each_ref().map(|row| (row.key.clone(), row.clone().finished(column)));
            assert_eq!(found, written);
            assert_eq!(found[0].1.figure, column.map(|_| 0.1));
            assert_eq!(found[1].1.error.as_deref(), Some("too deep"));
        }
        let found = read_columns(again(&mut file)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((&found[0]["drive.order"], &found[0]["seed"]), (&"sptf".into(), &u64::MAX.into()));
        assert_eq!((&found[0]["requests"], &found[0]["p99_ms"]), (&4.into(), &0.1.into()));
        assert_eq!((&found[1]["drive.order"], &found[1]["p99_ms"]), (&Value::Null, &Value::Null));
        assert_eq!(found[1]["error"], "too deep");
        assert_eq!((&found[0]["throttle_held"], &found[1]["throttle_held"]), (&2.0.into(), &Value::Null));
        assert_eq!(found[0]["histogram_ns"], serde_json::json!([10, 12]));
        assert_eq!(found[0]["histogram_requests"], serde_json::json!([3, 1]));
        assert_eq!(found[1]["histogram_ns"], serde_json::json!([]));
    }
}
