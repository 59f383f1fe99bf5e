//! Parquet traces: written and read, of others' types, renamed, and damaged.

use std::sync::Arc;

use headstack_model::{Instant, Nanos};
use headstack_workload::trace::{self, ColumnNames, Header, Kind, Packing, Record, Trace, TraceWriter};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

fn read(bytes: &[u8], columns: &str) -> Result<(Vec<Record>, Vec<String>), String> {
    let columns = ColumnNames::parse(columns)?;
    let mut trace =
        Trace::open_with_columns(bytes, "t", None, &columns).map_err(|error| error.to_string())?;
    let records: Result<Vec<Record>, _> = trace.by_ref().collect();
    let records = records.map_err(|error| error.to_string())?;
    assert_eq!(trace.format().name, "parquet");
    Ok((records, trace.header().names.clone()))
}

fn record(index: u64) -> Record {
    let kind = [Kind::Read, Kind::Write, Kind::Flush, Kind::Trim][index as usize % 4];
    let (offset, bytes) = if kind == Kind::Flush { (0, 0) } else { (index * 4096, 512 * (1 + index % 8)) };
    let response = index.is_multiple_of(3).then_some(Nanos(index * 1001));
    let source = index.is_multiple_of(2).then_some(index as u32);
    Record {
        response,
        source,
        ..Record::new(Instant(index * 1_000_003), index as u32 % 2, kind, offset, bytes)
    }
}

fn written(records: &[Record], header: &Header) -> Vec<u8> {
    let format = trace::named("parquet").expect("it is listed");
    let mut writer = TraceWriter::new(Vec::new(), format, Packing::None).expect("memory");
    records.iter().for_each(|record| writer.write(record, header).expect("memory"));
    writer.finish(header).expect("memory").0
}

#[test]
fn written_trace_is_read_as_it_was() {
    let header = Header { names: vec!["sda".to_string(), "sdb".to_string()], ..Header::default() };
    // More rows than a row group and a batch have.
    for count in [0, 1, 5, 70_000] {
        let records: Vec<Record> = (0..count).map(record).collect();
        let (again, names) = read(&written(&records, &header), "").unwrap_or_else(|error| panic!("{error}"));
        assert!(again == records, "{count}");
        let expected: &[&str] = if count == 0 {
            &[]
        } else if count == 1 {
            &["sda"]
        } else {
            &["sda", "sdb"]
        };
        assert_eq!(names, expected, "{count}");
    }
}

/// A file as other programs write it: a timestamp in microseconds, a word, a sector and a length that are real numbers, as of pandas with
/// missing values, and a latency in 32 bits. `None` is null.
fn foreign(compression: Compression, sectors: [Option<f64>; 2]) -> Vec<u8> {
    let column = |name: &str, physical, kind| {
        let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        Arc::new(builder.with_logical_type(kind).build().expect("it is a type"))
    };
    let fields = vec![
        column("when", Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        column("rwbs", Physical::BYTE_ARRAY, Some(LogicalType::String)),
        column("sector", Physical::DOUBLE, None),
        column("my length", Physical::DOUBLE, None),
        column("lat_us", Physical::INT32, None),
    ];
    let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build().expect("a schema"));
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, properties).expect("memory");
    let mut group = file.next_row_group().expect("a group");
    macro_rules! write {
        ($kind:ty, $values:expr, $levels:expr) => {
            let mut column = group.next_column().expect("a column").expect("it is there");
            column.typed::<$kind>().write_batch($values, Some($levels), None).expect("values");
            column.close().expect("memory");
        };
    }
    write!(Int64Type, &[1_700_000_000_000_001, 1_700_000_000_000_501], &[1, 1]);
    write!(ByteArrayType, &["R", "W"].map(ByteArray::from), &[1, 1]);
    let levels = sectors.map(|sector| i16::from(sector.is_some()));
    write!(DoubleType, &sectors.into_iter().flatten().collect::<Vec<_>>(), &levels);
    write!(DoubleType, &[4096.0, 8192.0], &[1, 1]);
    write!(Int32Type, &[250], &[1, 0]);
    group.close().expect("memory");
    file.into_inner().expect("memory")
}

#[test]
fn columns_of_other_programs_are_read_with_their_types_and_names() {
    let names = "time_s=when,bytes=my length";
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::GZIP(Default::default())]
    {
        let (records, _) = read(&foreign(compression, [Some(8.0), Some(16.0)]), names)
            .unwrap_or_else(|error| panic!("{error}"));
        let [first, second] = records[..] else { panic!("{records:?}") };
        assert_eq!((first.time.0, second.time.0), (1_700_000_000_000_001_000, 1_700_000_000_000_501_000));
        assert_eq!((first.kind, first.offset, first.bytes), (Kind::Read, 4096, 4096));
        assert_eq!((second.kind, second.offset, second.bytes), (Kind::Write, 8192, 8192));
        assert_eq!((first.response, second.response), (Some(Nanos(250_000)), None));
    }
}

#[test]
fn bad_files_are_rejected_in_one_line() {
    let file = foreign(Compression::SNAPPY, [Some(8.0), Some(16.0)]);
    let refused = |bytes: &[u8], columns: &str| {
        let error = read(bytes, columns).expect_err("it is bad");
        assert!(!error.contains('\n'), "{error}");
        error
    };
    let missing = refused(&file, "bytes=my length");
    assert!(missing.starts_with("t: the header names no column for the time"), "{missing}");
    let unknown = refused(&file, "time_s=then");
    assert!(
        unknown.contains("has no column `then`; it has when, rwbs, sector, my length, lat_us"),
        "{unknown}"
    );
    let null = refused(&foreign(Compression::UNCOMPRESSED, [Some(8.0), None]), "time_s=when,bytes=my length");
    assert!(null.starts_with("t: line 3: the place is ``"), "{null}");
    let number = refused(&file, "time_s=when,bytes=my length,op=lat_us");
    assert!(number.starts_with("t: line 2: the operation is `250`"), "{number}");
    let part =
        refused(&foreign(Compression::UNCOMPRESSED, [Some(8.5), Some(1.0)]), "time_s=when,bytes=my length");
    assert!(part.starts_with("t: line 2: the place is `8.5`"), "{part}");
    for end in [4, 12, file.len() / 2, file.len() - 1] {
        let cut = refused(&file[..end], "time_s=when,bytes=my length");
        assert!(cut.contains("the Parquet file is damaged: "), "{end}: {cut}");
    }
    let mut text = Trace::open(&b"time,op,lba,size\n"[..], "t", trace::named("parquet")).expect("it opens");
    let error = text.next_record().expect_err("it is text").to_string();
    assert_eq!(error, "t: the header is not that of a Parquet file");
}

#[test]
fn no_changed_byte_of_a_file_makes_its_reader_panic() {
    let whole = written(&(0..50).map(record).collect::<Vec<_>>(), &Header::default());
    for at in (0..whole.len()).step_by(7) {
        let mut file = whole.clone();
        file[at] ^= 0x55;
        if let Err(error) = read(&file, "") {
            assert!(!error.contains('\n'), "{at}: {error}");
        }
    }
}
