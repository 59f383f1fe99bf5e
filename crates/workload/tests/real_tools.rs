//! The tools that define trace formats read our traces, and we read theirs.

#![allow(clippy::disallowed_methods, reason = "tests run other programs")]

use std::path::Path;
use std::process::{Command, Output};

use headstack_model::{Instant, Nanos};
use headstack_prerequisites::have_programs;
use headstack_workload::trace::{self, Format, Header, Kind, Packing, Record, Trace, TraceWriter};

fn named(name: &str) -> &'static Format {
    trace::named(name).expect("it is listed")
}

fn write(records: &[Record], format: &'static Format) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), format, Packing::None).expect("memory takes all");
    for record in records {
        writer.write(record, &Header::default()).expect("memory takes all");
    }
    writer.finish(&Header::default()).expect("memory takes all").0
}

fn read(bytes: &[u8], format: &'static Format) -> Vec<Record> {
    let trace = Trace::open(bytes, "trace", None).expect("the format is recognised");
    assert_eq!(trace.format().name, format.name);
    trace.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a program in a folder; none if it is not installed.
fn run(program: &str, args: &[&str], folder: &Path) -> Option<Output> {
    let run = || Command::new(program).args(args).current_dir(folder).output();
    have_programs(&[program]).then(|| run().unwrap_or_else(|error| panic!("{program}: {error}")))
}

/// Reads, writes, trims and flushes, some of which are outstanding at the same time.
fn records() -> Vec<Record> {
    let record = |index: u64| {
        let kind = Kind::ALL[(index % 7 % 4) as usize];
        let (offset, bytes) = if kind == Kind::Flush { (0, 0) } else { (index * 7919 % 1000 * 4096, 4096) };
        let time = Instant(1_000_000 * index);
        Record {
            response: (kind != Kind::Flush).then_some(Nanos(1_700_000 + 1000 * (index % 5))),
            source: Some(100 + index as u32 % 3),
            ..Record::new(time, 8 << 20, kind, offset, bytes)
        }
    };
    (0..200).map(record).collect()
}

#[test]
fn blkparse_prints_written_records() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("made.blktrace.0");
    std::fs::write(path, write(&records(), named("blktrace"))).expect("it is writable");
    let Some(output) = run("blkparse", &["-i", "made"], folder.path()) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = output.stdout.iter().position(|byte| *byte == b'\n').expect("there are lines");
    // The first line of the output may name the input file.
    let events =
        if output.stdout.starts_with(b"Input") { &output.stdout[printed + 1..] } else { &output.stdout };
    assert_eq!(read(events, named("blkparse")), records());
}

const JOB: [&str; 9] = [
    "--name=job",
    "--ioengine=null",
    "--size=4M",
    "--bs=4k",
    "--rw=randrw",
    "--write_iolog=out.log",
    "--filename=disk0",
    "--randrepeat=1",
    "--thread",
];

#[test]
fn fio_log_is_read_and_its_copy_replayed_by_fio() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let Some(output) = run("fio", &JOB, folder.path()) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let logged = read(&std::fs::read(folder.path().join("out.log")).expect("fio wrote it"), named("iolog3"));
    assert_eq!(logged.len(), 1024);
    for version in ["iolog2", "iolog3"] {
        std::fs::write(folder.path().join("in.log"), write(&logged, named(version))).expect("it is writable");
        let replay = [
            "--name=replay",
            "--ioengine=null",
            "--read_iolog=in.log",
            "--replay_no_stall=1",
            "--thread",
            "--minimal",
        ];
        let output = run("fio", &replay, folder.path()).expect("fio is there");
        let said = String::from_utf8_lossy(&output.stdout);
        // KiB read and written, in fio's terse output of version 3.
        let found: Vec<&str> = [5, 46].map(|field| said.split(';').nth(field).unwrap_or_default()).into();
        let requested = |kind| {
            let own = logged.iter().filter(|record| record.kind == kind);
            (own.map(|record| record.bytes).sum::<u64>() / 1024).to_string()
        };
        assert_eq!(found, [requested(Kind::Read), requested(Kind::Write)], "{version}: {said}");
    }
}
