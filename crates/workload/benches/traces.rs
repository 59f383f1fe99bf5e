//! Records per second of each trace format, read and written: 100,000 requests in memory. Every format can express these, except for response
//! times and processes where it has no field for them.

#![allow(missing_docs, reason = "the macros of criterion make public items without")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use headstack_model::{Instant, Nanos};
use headstack_workload::trace::{self, Format, Header, Kind, Packing, Record, Trace, TraceWriter};

const RECORDS: u64 = 100_000;

/// Requests about every 200 µs, one in three a write, each with a response time of up to 8 ms.
fn records() -> Vec<Record> {
    let mut random = 1u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut time = 0;
    let mut record = || {
        time += 1000 * next(400);
        let kind = if next(3) == 0 { Kind::Write } else { Kind::Read };
        let (offset, bytes) = (512 * next(1 << 31), 4096 * (1 + next(16)));
        Record {
            response: Some(Nanos(1000 * next(8000))),
            source: Some(next(5000) as u32),
            ..Record::new(Instant(time), 0, kind, offset, bytes)
        }
    };
    (0..RECORDS).map(|_| record()).collect()
}

fn write(records: &[Record], format: &'static Format, packing: Packing) -> Vec<u8> {
    let header = Header::default();
    let mut writer = TraceWriter::new(Vec::new(), format, packing).expect("memory takes all");
    for record in records {
        writer.write(record, &header).expect("memory takes all");
    }
    writer.finish(&header).expect("memory takes all").0
}

fn read(bytes: &[u8], format: &'static Format) -> u64 {
    let mut trace = Trace::open(bytes, "bench", Some(format)).expect("memory can be read");
    let mut sum = 0;
    while let Some(record) = trace.next_record().expect("it is well formed") {
        sum ^= black_box(record).offset;
    }
    sum
}

fn formats(criterion: &mut Criterion) {
    let records = records();
    let mut group = criterion.benchmark_group("trace");
    group.throughput(Throughput::Elements(RECORDS)).sample_size(10);
    for format in trace::all() {
        let bytes = write(&records, format, Packing::None);
        group.bench_function(BenchmarkId::new("read", format.name), |bencher| {
            bencher.iter(|| read(&bytes, format));
        });
        group.bench_function(BenchmarkId::new("write", format.name), |bencher| {
            bencher.iter(|| write(&records, format, Packing::None).len());
        });
    }
    let format = trace::named("disksim").expect("it is listed");
    for (name, packing) in [("gzip", Packing::Gzip), ("zstd", Packing::Zstd)] {
        let bytes = write(&records, format, packing);
        group.bench_function(BenchmarkId::new("read disksim", name), |bencher| {
            bencher.iter(|| read(&bytes, format));
        });
    }
    group.finish();
}

criterion_group!(benches, formats);
criterion_main!(benches);
