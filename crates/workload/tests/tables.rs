//! Tables of named columns and of biosnoop.

use headstack_model::{Instant, Nanos};
use headstack_workload::trace::{ColumnNames, Kind, Record, Trace};

fn read_biosnoop(text: &str) -> Vec<Record> {
    let trace = Trace::open(text.as_bytes(), "t", None).expect("the format is recognised");
    assert_eq!(trace.format().name, "biosnoop");
    trace.collect::<Result<_, _>>().expect("the trace is good")
}

#[test]
fn requests_come_in_order_of_issue_from_the_first_on() {
    let found = read_biosnoop(
        "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)\n\
         0.000000    tmux: server   4711   sdb     W 2048       4096      0.01    2.00\n\
         0.001000    cat            12     nvme0n1 R 16         512       0.00    4.00\n\
         0.005000    ?              0      sdb     FF 0         0         0.00    0.50\n",
    );
    let of =
        |at: usize| (found[at].time.0, found[at].device, found[at].kind, found[at].offset, found[at].bytes);
    // The second was issued 3 ms before the first completion, the first 2 ms.
    assert_eq!(of(0), (0, 1, Kind::Read, 8192, 512));
    assert_eq!(of(1), (1_000_000, 0, Kind::Write, 1 << 20, 4096));
    assert_eq!(of(2), (7_500_000, 0, Kind::Flush, 0, 0));
    assert_eq!((found[1].source, found[1].response), (Some(4711), Some(Nanos(2_000_000))));
}

#[test]
fn table_without_places_is_rejected_in_one_line() {
    let text = "TIME(ms)     DISK    COMM             PID    LAT(ms)\n611          nvme0n1 bash             4179         10\n";
    let error = Trace::open(text.as_bytes(), "t", None).expect("recognised").find_map(Result::err);
    let error = error.expect("there are no sectors").to_string();
    assert!(
        error.starts_with("t: line 1: the header has no columns T, SECTOR and BYTES, as that of biosnoop.bt")
    );
}

#[test]
fn milliseconds_and_added_columns_are_read() {
    let found =
        read_biosnoop("TIME(ms) DISK COMM PID T SECTOR BYTES LAT(ms)\n611 sda bash 4179 WS 8 512 10\n");
    assert_eq!((found[0].time.0, found[0].offset, found[0].kind), (601_000_000, 4096, Kind::Write));
}

fn read(text: &str, columns: &str) -> Result<Vec<Record>, String> {
    let names = ColumnNames::parse(columns)?;
    let trace =
        Trace::open_with_columns(text.as_bytes(), "t", None, &names).map_err(|error| error.to_string())?;
    trace.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

#[test]
fn columns_are_found_by_common_names_and_units() {
    for text in [
        "timestamp_us,pid,rw,lba,sectors,lat(ms)\n1500000,7,R,16,8,2.5\n",
        "Latency (ms);Sector;Size;Op;PID;Time (s);Comment\n2.5;16;4096;read;7;1.5;none\n",
        "type\tTIME [ms]\toffset_kib\tlength_kb\tresponse_us\tprocess\n0\t1500\t8\t4\t2500\t7\n",
        "\"time\",\"dev, name\",\"op\",\"offset\",\"bytes\",\"response_s\",\"pid\"\n1.5,\"a,b\",\"Read\",8192,4096,0.0025,7\n",
    ] {
        let found = read(text, "").unwrap_or_else(|error| panic!("{error}\n{text}"));
        let wanted = Record {
            response: Some(Nanos(2_500_000)),
            source: Some(7),
            ..Record::new(Instant(1_500_000_000), 0, Kind::Read, 8192, 4096)
        };
        assert_eq!(found, [wanted], "{text}");
    }
}

#[test]
fn own_names_are_given_for_columns() {
    let text = "when,where,how_much,what\n3,5,2,W\n";
    let found = read(text, "time_ms=when,lba=where,sectors=how_much,op=what").expect("all are named");
    assert_eq!((found[0].time.0, found[0].offset, found[0].bytes), (3_000_000, 2560, 1024));
    let error = read(text, "time_ms=when,lba=where,sectors=how_much,op=whut").expect_err("there is none");
    assert_eq!(error, "t: line 1: the header has no column `whut`; it has when, where, how_much, what");
    let error = read(text, "").expect_err("the names are not known");
    assert!(error.starts_with("t: the first line names no column for the time: time_us, "), "{error}");
    let error = read(text, "tim_ms=when").expect_err("no such meaning");
    assert!(error.starts_with("`tim_ms` is no column of a trace: "), "{error}");
}

#[test]
fn malformed_tables_are_rejected_with_their_line() {
    let error = |text: &str| read(text, "").expect_err("it is bad");
    assert!(
        error("time,op,lba,size\n1,X,2,3\n").starts_with("t: line 2: the operation is `X`, where read, ")
    );
    assert_eq!(
        error("time,op,lba,size\n1,R\n"),
        "t: line 2: 2 fields, where `as many as the first line names` are 4"
    );
    assert!(error("time,op,lba,size\n1,R,-1,512\n").starts_with("t: line 2: the place is `-1`"));
}

#[test]
fn times_of_an_epoch_are_read_written_and_counted_without_overflow() {
    // The first request of an MSR trace: 100 ns since 1601, above 2^63 ns.
    let text =
        "128166372000471450,srv,0,Read,8144175104,65536,77133\n128166372010471450,srv,0,Write,0,512,100\n";
    let records_of = |text: &[u8]| {
        let trace = Trace::open(text, "t", None).expect("recognised");
        trace.collect::<Result<Vec<Record>, _>>().expect("good")
    };
    let records = records_of(text.as_bytes());
    assert_eq!(records[0].time, Instant(12_816_637_200_047_145_000));
    for format in headstack_workload::trace::all() {
        let none = headstack_workload::trace::Packing::None;
        let mut writer =
            headstack_workload::trace::TraceWriter::new(Vec::new(), format, none).expect("memory");
        let header =
            headstack_workload::trace::Header { names: vec!["srv.0".to_string()], ..Default::default() };
        records.iter().for_each(|record| writer.write(record, &header).expect("memory"));
        let (bytes, _) = writer.finish(&header).expect("memory");
        if matches!(format.name, "headstack" | "table" | "tsv" | "msr") {
            let again: Vec<Instant> = records_of(&bytes).iter().map(|record| record.time).collect();
            assert_eq!(again, [records[0].time, records[1].time], "{}", format.name);
        }
    }
}
