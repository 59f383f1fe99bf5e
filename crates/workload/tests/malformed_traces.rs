//! Malformed traces: each error is one line with the file, the position, the field and the allowed values.

use headstack_workload::trace::{self, Trace};

/// The first error when these bytes are read.
fn said(format: &str, bytes: &[u8]) -> String {
    let format = Some(trace::named(format).unwrap_or_else(|| panic!("{format} is listed")));
    let mut trace = Trace::open(bytes, "bad.trace", format).expect("memory can be read");
    let error = trace.find_map(Result::err).expect("the trace is malformed").to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

/// Format, text, and the error's message.
const TEXTS: [(&str, &str, &str); 38] = [
    ("disksim", "0 1 2 3 1\n0 1 2 3", "line 2: 4 fields, where `time_ms device lbn sectors flags` are 5"),
    ("disksim", "0 1 2 3 1 9", "line 1: 6 fields, where `time_ms device lbn sectors flags` are 5"),
    ("disksim", "\n\n-1 1 2 3 1", "line 3: time_ms is `-1`, where a time from 0 to 500 years is allowed"),
    ("disksim", "nan 1 2 3 1", "line 1: time_ms is `nan`, where a time from 0 to 500 years is allowed"),
    (
        "disksim",
        "0 disk 2 3 1",
        "line 1: device is `disk`, where a whole number from 0 to 4294967295 is allowed",
    ),
    (
        "disksim",
        "0 1 18014398509481984 3 1",
        "line 1: lbn is `18014398509481984`, where a whole number below 2^54 is allowed",
    ),
    (
        "disksim",
        "0 1 2 4294967296 1",
        "line 1: sectors is `4294967296`, where a whole number from 0 to 4294967295 is allowed",
    ),
    (
        "disksim",
        "0 1 2 3 g",
        "line 1: flags is `g`, where a hexadecimal number of up to eight digits is allowed",
    ),
    (
        "validate",
        "R Hit 1 1 1",
        "line 1: 5 fields, where `R|W action lbn sectors measured_us think_us` are 6",
    ),
    ("validate", "r Hit 1 1 1 1", "line 1: the operation is `r`, where `R` or `W` is allowed"),
    (
        "validate",
        "R Hit 1 0 1 1",
        "line 1: sectors is `0`, where a whole number from 1 to 4294967295 is allowed",
    ),
    (
        "validate",
        "R Hit 1 1 1e300 1",
        "line 1: measured_us is `1e300`, where a time from 0 to 500 years is allowed",
    ),
    ("validate", "R Hit 1 1 1 x", "line 1: think_us is `x`, where a time from 0 to 500 years is allowed"),
    ("spc", "0,1,2,3", "line 1: 4 fields, where `asu,lba,bytes,opcode,time_s` are 5"),
    ("spc", "0,1,2,X,0.5", "line 1: opcode is `X`, where `R` or `W` is allowed"),
    ("spc", "0,1,-2,R,0.5", "line 1: bytes is `-2`, where a whole number from 0 to 4294967295 is allowed"),
    (
        "msr",
        "1,usr,0,Read,0,512,1\n1,usr,0,read,0,512,1",
        "line 2: type is `read`, where `Read` or `Write` is allowed",
    ),
    ("msr", "1,,0,Read,0,512,1", "line 1: host is ``, where a name of up to 200 bytes is allowed"),
    (
        "msr",
        "1,usr,0,Read,9223372036854775808,512,1",
        "line 1: offset is `9223372036854775808`, where a whole number below 2^63 is allowed",
    ),
    (
        "msr",
        "1,usr,0,Read,0,512",
        "line 1: 6 fields, where `time,host,disk,type,offset,bytes,response` are 7",
    ),
    ("alibaba", "1,T,0,512,7", "line 1: opcode is `T`, where `R` or `W` is allowed"),
    ("alibaba", "1,R,0,512,", "line 1: time_us is ``, where a time from 0 to 500 years is allowed"),
    ("tencent", "1,2,3,2,5", "line 1: type is `2`, where 0 (read) or 1 (write) is allowed"),
    ("tencent", "1,2,3,0,v5", "line 1: volume is `v5`, where a whole number from 0 to 4294967295 is allowed"),
    (
        "blkparse",
        "8.0 0 1 0.5 7 Q R 0 + 8 [a]",
        "line 1: the device is `8.0`, where MAJOR,MINOR with numbers up to 4095 and 1048575 is allowed",
    ),
    (
        "blkparse",
        "8,0 0 1 0.5 7 Q",
        "line 1: 6 fields, where `major,minor cpu sequence time_s process action rwbs sector + sectors [name]` are 10",
    ),
    (
        "blkparse",
        "8,0 0 1 0.5 7 Q R zero + 8 [a]",
        "line 1: sector is `zero`, where a whole number below 2^54 is allowed",
    ),
    (
        "blkparse",
        "8,0 0 1 0.5 7 Q R 0 + x [a]",
        "line 1: sectors is `x`, where a whole number from 0 to 4294967295 is allowed",
    ),
    ("iolog2", "fio version 1 iolog\n", "line 1: the header is not `fio version 2 iolog`"),
    ("iolog3", "fio version 2 iolog\n", "line 1: the header is not `fio version 3 iolog`"),
    (
        "iolog2",
        "fio version 2 iolog\nf reed 0 1",
        "line 2: the action is `reed`, where read, write, trim, sync, datasync, wait (version 2), add, open, close or unlink is allowed",
    ),
    ("iolog2", "fio version 2 iolog\nf read 0", "line 2: 3 fields, where `file action offset length` are 4"),
    (
        "iolog2",
        "fio version 2 iolog\nf wait soon 0",
        "line 2: the wait is `soon`, where a time from 0 to 500 years is allowed",
    ),
    (
        "iolog3",
        "fio version 3 iolog\nf read 0 512",
        "line 2: time_us is `f`, where a time from 0 to 500 years is allowed",
    ),
    (
        "iolog3",
        "fio version 3 iolog\n9 f read 0 512 7",
        "line 2: 6 fields, where `time_us file action offset length` are 5",
    ),
    (
        "headstack",
        "time,device\n",
        "line 1: the header is not `time_ns,device,op,offset,bytes,response_ns,think_ns,process`",
    ),
    (
        "headstack",
        "time_ns,device,op,offset,bytes,response_ns,think_ns,process\n1,0,look,0,0,,,",
        "line 2: op is `look`, where `read`, `write`, `flush` or `trim` is allowed",
    ),
    (
        "headstack",
        "time_ns,device,op,offset,bytes,response_ns,think_ns,process\n1,0,read,0,0,,,\n1,sda,read,0,0,,,",
        "line 3: device is `sda`, where a whole number from 0 to 4294967295 is allowed",
    ),
];

#[test]
fn malformed_line_is_rejected_with_place_and_field() {
    for (format, text, expected) in TEXTS {
        assert_eq!(said(format, text.as_bytes()), format!("bad.trace: {expected}"), "{format}: {text}");
    }
}

/// An SRT trace with these words as its records.
fn srt(words: &[u32]) -> Vec<u8> {
    let mut bytes = b"$$TR_IOREC-1.3\n\x0c".to_vec();
    words.iter().for_each(|word| bytes.extend(word.to_be_bytes()));
    bytes
}

/// A blktrace event with this time, first sector and action.
fn event(time: u64, sector: u64, action: u32) -> Vec<u8> {
    let mut bytes = [0x6561_7407u32, 1].map(u32::to_le_bytes).concat();
    bytes.extend([time, sector].map(u64::to_le_bytes).concat());
    bytes.extend([512, action, 7, 8 << 20, 0, 0].map(u32::to_le_bytes).concat());
    bytes
}

/// A vSCSI record in the format of version 1, with this command, version and first sector.
fn vscsi(command: u16, version: u16, lbn: u64) -> Vec<u8> {
    let mut bytes = [0u32, 512, 1].map(u32::to_le_bytes).concat();
    bytes.extend([command, version].map(u16::to_le_bytes).concat());
    bytes.extend([lbn, 5].map(u64::to_le_bytes).concat());
    bytes
}

#[test]
fn malformed_record_is_rejected_with_place_and_field() {
    let good = [56, 0x0004_0001, 1, 2, 3, 4, 512, 9, 0x0800_0008, 4, 0, 1, 0, 1];
    let with = |at: usize, word: u32| {
        let mut words = good;
        words[at] = word;
        srt(&words)
    };
    let queue_read = 0x0011_0001;
    let cut = |bytes: Vec<u8>, to: usize| bytes[..to].to_vec();
    let two = |first: Vec<u8>, second: Vec<u8>| [first, second].concat();
    let cases = [
        ("srt", b"no form feed".to_vec(), "byte 0: the header has no byte 0x0C to end it"),
        (
            "srt",
            with(0, 60),
            "byte 16: the size is `60`, where 52 bytes, 4 more from version 4 on and 4 more for a suspect record is allowed",
        ),
        ("srt", with(1, 0x0009_0001), "byte 16: the version is `9`, where 1 to 4 is allowed"),
        (
            "srt",
            with(1, 0x0004_0002),
            "byte 16: the type is `2`, where 1 (request) or 4 (suspect) is allowed",
        ),
        ("srt", with(3, 1_000_000), "byte 16: the microseconds is `1000000`, where 0 to 999999 is allowed"),
        ("srt", with(6, 100), "byte 16: the size in bytes is `100`, where a multiple of 512 is allowed"),
        ("srt", cut(srt(&good), 30), "byte 16: the trace ends after 14 of the 56 bytes of a record"),
        ("srt", cut(srt(&good), 20), "byte 16: the trace ends after 4 of the 8 bytes of a record"),
        ("vscsi1", vscsi(0x28, 0x0300, 0), "byte 0: the version is `768`, where 0x0100 to 0x01ff is allowed"),
        (
            "vscsi1",
            two(vscsi(0x28, 0x0100, 0), vscsi(0x12, 0x0100, 0)),
            "byte 32: the command is `18`, where a read (40), write (42), cache synchronisation (53) or unmap (66) is allowed",
        ),
        (
            "vscsi1",
            vscsi(0x28, 0x0100, 1 << 60),
            "byte 0: the first sector is `1152921504606846976`, where a number below 2^54 is allowed",
        ),
        (
            "vscsi1",
            cut(vscsi(0x28, 0x0100, 0), 31),
            "byte 0: the trace ends after 31 of the 32 bytes of a record",
        ),
        ("vscsi2", vec![0; 40], "byte 0: the version is `0`, where 0x0200 to 0x02ff is allowed"),
        (
            "blktrace",
            vec![7; 48],
            "byte 0: the magic number is `117901063`, where 0x65617407 in either byte order is allowed",
        ),
        (
            "blktrace",
            event(u64::MAX, 0, queue_read),
            "byte 0: the time is `18446744073709551615`, where up to 2^63 nanoseconds is allowed",
        ),
        (
            "blktrace",
            two(event(1, 2, queue_read), event(3, 1 << 54, queue_read)),
            "byte 48: the first sector is `18014398509481984`, where a number below 2^54 is allowed",
        ),
        (
            "blktrace",
            cut(event(1, 2, queue_read), 40),
            "byte 0: the trace ends after 40 of the 48 bytes of a record",
        ),
    ];
    for (format, bytes, expected) in cases {
        assert_eq!(said(format, &bytes), format!("bad.trace: {expected}"));
    }
}

#[test]
fn malformed_lines_are_skipped_up_to_limit() {
    let text = "0 1 2 3 1\nbad\n1 1 2 3 1\n2 1 x 3 1\n3 1 2 3 1\n";
    let open =
        |skip| Trace::open(text.as_bytes(), "t", trace::named("disksim")).expect("memory").skipping(skip);
    let mut two = open(2);
    assert_eq!(two.by_ref().filter(Result::is_ok).count(), 3);
    let (skipped, first) = two.skipped();
    assert_eq!(skipped, 2);
    assert_eq!(
        first.expect("one was").to_string(),
        "t: line 2: 1 fields, where `time_ms device lbn sectors flags` are 5"
    );
    let mut one = open(1);
    assert_eq!(one.find_map(Result::err).expect("the second is one too many").place, trace::Place::Line(4));
    assert!(one.next().is_none());
}

#[test]
fn malformed_record_is_skipped_but_truncated_end_is_not() {
    let mut bytes = vscsi(0x28, 0x0100, 1);
    bytes.extend(vscsi(0x99, 0x0100, 2));
    bytes.extend(vscsi(0x2a, 0x0100, 3));
    bytes.extend([0; 5]);
    let mut trace = Trace::open(&bytes[..], "t", trace::named("vscsi1")).expect("memory").skipping(9);
    let lbns: Vec<u64> = trace.by_ref().map_while(Result::ok).map(|record| record.offset / 512).collect();
    assert_eq!(lbns, [1, 3]);
    assert_eq!(trace.skipped().0, 1);
}

#[test]
fn trace_of_unknown_format_is_rejected() {
    let error = Trace::open(&b"hello world\n"[..], "x", None).err().expect("no format looks like it");
    assert_eq!(
        error.to_string(),
        "x: no known format begins like this; name one of disksim, validate, srt, spc, msr, alibaba, tencent, vscsi1, \
         vscsi2, blkparse, blktrace, iolog2, iolog3, headstack, biosnoop, table, tsv, parquet"
    );
}

#[test]
fn truncated_compression_is_rejected() {
    let error = Trace::open(&[0x1f, 0x8b, 8, 0, 0, 0, 0][..], "x.gz", None).err().expect("it is cut short");
    assert!(error.to_string().starts_with("x.gz: cannot be read: "), "{error}");
}
