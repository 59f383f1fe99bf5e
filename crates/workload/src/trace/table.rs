//! CSV and TSV with named columns: the first line names them, in any order and with others between.
//!
//! The separator is that of the first line: tabs, semicolons or commas. A column is found by its name, in either case, with its unit at the
//! end (`time_us`, `lat(ms)`, `offset_kb`); of several that fit the first counts. A time without a unit is in seconds. An own name for a
//! column is given by [`ColumnNames`](super::ColumnNames).
//!
//! *Source:* the names in public traces and tools; the list is below.

use std::io::BufRead;

use headstack_model::Nanos;

use super::error::{Fault, Place};
use super::names::{Names, plain_name};
use super::text::{self, Lines, push, push_time};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Presence, Record, Source, Span};

pub(super) const FORMAT_CSV: Format = Format {
    name: "table",
    title: "CSV with named columns",
    extensions: &["csv"],
    encoding: Encoding::Text,
    form: "time_s,device,op,offset,bytes,response_s,process",
    note: NOTE,
    carries: CARRIES,
    sniff: |head| {
        text::first_line(head).is_some_and(|line| {
            separator(line) != b'\t' && !is_of_msr(line) && TableColumns::parse(line).is_ok()
        })
    },
    read: |input| Box::new(TableReader::new(Lines::new(input))),
    write: || Box::new(NamedColumnWriter(',')),
};

pub(super) const FORMAT_TSV: Format = Format {
    name: "tsv",
    title: "TSV with named columns",
    extensions: &["tsv"],
    encoding: Encoding::Text,
    form: "time_s device op offset bytes response_s process",
    note: NOTE,
    carries: CARRIES,
    sniff: |head| {
        text::first_line(head)
            .is_some_and(|line| separator(line) == b'\t' && TableColumns::parse(line).is_ok())
    },
    read: |input| Box::new(TableReader::new(Lines::new(input))),
    write: || Box::new(NamedColumnWriter('\t')),
};

/// Whether it is the heading of MSR's traces, whose times are in units that no name of a column says.
fn is_of_msr(line: &[u8]) -> bool {
    let heading = b"timestamp,hostname";
    line.get(..heading.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(heading))
}

const NOTE: &str = "the first line names the columns, in any order; `--columns` gives names for others";

pub(super) const CARRIES: Carries = Carries {
    latest: text::LATEST,
    empty: true,
    flush: true,
    trim: true,
    response: Some(Span { tick: 1, longest: text::LATEST, always: false }),
    source: Presence::Sometimes,
    ..Carries::LEAST
};

/// What a column says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Time,
    Device,
    Op,
    Place,
    Length,
    Response,
    Process,
}

const MEANINGS: usize = 7;

/// The names of columns without their units, with the bytes of their unit where it is one of places and lengths.
const NAMES: [(Meaning, u64, &[&str]); 10] = [
    (
        Meaning::Time,
        1,
        &[
            "time",
            "timestamp",
            "ts",
            "t",
            "start",
            "starttime",
            "issue",
            "issued",
            "issuetime",
            "submitted",
            "arrival",
            "datetime",
        ],
    ),
    (
        Meaning::Device,
        1,
        &[
            "device",
            "dev",
            "disk",
            "diskid",
            "disknumber",
            "volume",
            "volumeid",
            "drive",
            "lun",
            "deviceid",
            "asu",
        ],
    ),
    (
        Meaning::Op,
        1,
        &[
            "op",
            "rw",
            "type",
            "iotype",
            "kind",
            "operation",
            "opcode",
            "requesttype",
            "optype",
            "command",
            "cmd",
            "rwbs",
            "readwrite",
        ],
    ),
    (Meaning::Place, 1, &["offset", "byteoffset", "byte", "firstbyte", "pos", "position", "address", "addr"]),
    (
        Meaning::Place,
        512,
        &[
            "lba",
            "lbn",
            "sector",
            "firstsector",
            "startsector",
            "startlba",
            "block",
            "blk",
            "blkno",
            "blocknumber",
        ],
    ),
    (
        Meaning::Length,
        1,
        &[
            "bytes",
            "size",
            "length",
            "len",
            "iosize",
            "requestsize",
            "reqsize",
            "nbytes",
            "blksize",
            "transfersize",
        ],
    ),
    (
        Meaning::Length,
        512,
        &[
            "sectors",
            "nsectors",
            "sectorcount",
            "numsectors",
            "blocks",
            "nblocks",
            "blockcount",
            "count",
            "nlb",
            "nblk",
        ],
    ),
    (
        Meaning::Response,
        1,
        &["response", "responsetime", "latency", "lat", "duration", "elapsed", "servicetime", "rt"],
    ),
    (Meaning::Process, 1, &["process", "pid", "processid", "tid", "source"]),
    (Meaning::Process, 1, &["job"]),
];

const TIME_UNITS: [(&str, u64); 12] = [
    ("nanoseconds", 1),
    ("nsec", 1),
    ("ns", 1),
    ("microseconds", 1_000),
    ("usec", 1_000),
    ("us", 1_000),
    ("milliseconds", 1_000_000),
    ("msec", 1_000_000),
    ("ms", 1_000_000),
    ("seconds", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("s", 1_000_000_000),
];

const BYTE_UNITS: [(&str, u64); 7] = [
    ("bytes", 1),
    ("kib", 1024),
    ("kb", 1024),
    ("mib", 1 << 20),
    ("mb", 1 << 20),
    ("sectors", 512),
    ("b", 1),
];

/// The meaning of a column of this name, and its unit: nanoseconds or bytes.
pub(super) fn meaning(name: &str) -> Option<(Meaning, u64)> {
    let lower = name.trim().trim_matches('"').to_ascii_lowercase();
    let plain: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
    let known = |plain: &str| {
        NAMES.iter().find(|(_, _, names)| names.contains(&plain)).map(|(what, unit, _)| (*what, *unit))
    };
    let is_time = |what: Meaning| matches!(what, Meaning::Time | Meaning::Response);
    if let Some((what, unit)) = known(&plain) {
        return Some((what, if is_time(what) { 1_000_000_000 } else { unit }));
    }
    // The unit is apart from the name: `time_us`, `lat(ms)`, `offset kb`.
    let (base, unit) = lower.trim_end_matches([')', ']']).rsplit_once(['_', '(', '[', ' ', '-', '.'])?;
    let base: String = base.chars().filter(char::is_ascii_alphanumeric).collect();
    let (what, _) = known(&base)?;
    let units: &[(&str, u64)] = if is_time(what) {
        &TIME_UNITS
    } else if matches!(what, Meaning::Place | Meaning::Length) {
        &BYTE_UNITS
    } else {
        return None;
    };
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| (what, *factor))
}

fn separator(line: &[u8]) -> u8 {
    *b"\t;,".iter().find(|separator| line.contains(separator)).unwrap_or(&b',')
}

/// The fields of a line; a separator within double quotes is part of its field.
fn split(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    let fields = line.split(move |byte| {
        quoted ^= *byte == b'"';
        *byte == separator && !quoted
    });
    fields.map(|field| {
        let field = field.trim_ascii();
        field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field)
    })
}

/// What a first line that names columns lacks for a trace; `None` for a line that names none.
pub(super) fn missing(head: &[u8]) -> Option<&'static str> {
    let line = text::first_line(head)?;
    let names: Vec<&[u8]> = split(line, separator(line)).collect();
    let is_name = |name: &&[u8]| name.first().is_some_and(u8::is_ascii_alphabetic);
    if names.len() < 4 || !names.iter().all(is_name) {
        return None;
    }
    TableColumns::parse(line).err()
}

/// What a first line lacks for a trace, whatever it names.
pub(super) fn missing_of(head: &[u8]) -> Option<&'static str> {
    TableColumns::parse(text::first_line(head)?).err()
}

/// Where in a line a column is, and its unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableColumns {
    separator: u8,
    columns: [Option<(usize, u64)>; MEANINGS],
    /// Fields that a line has at least: those up to the last named one.
    number: usize,
}

impl TableColumns {
    /// The columns that a first line names.
    ///
    /// *Errors:* what is missing.
    fn parse(line: &[u8]) -> Result<TableColumns, &'static str> {
        let separator = separator(line);
        TableColumns::named(
            separator,
            split(line, separator).map(|name| std::str::from_utf8(name).unwrap_or_default()),
        )
    }

    pub(super) fn named<'a>(
        separator: u8,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<TableColumns, &'static str> {
        let mut layout = TableColumns { separator, columns: [None; MEANINGS], number: 0 };
        for (at, name) in names.enumerate() {
            if let Some((what, unit)) = meaning(name) {
                let column = &mut layout.columns[what as usize];
                if column.is_none() {
                    *column = Some((at, unit));
                    layout.number = at + 1;
                }
            }
        }
        for (what, missing) in [
            (
                Meaning::Time,
                "names no column for the time: time_us, timestamp, …; say --columns time_us=NAME",
            ),
            (Meaning::Op, "names no column for the operation: op, rw, type, …; say --columns op=NAME"),
            (Meaning::Place, "names no column for the place: offset, lba, sector, …; say --columns lba=NAME"),
            (
                Meaning::Length,
                "names no column for the length: bytes, size, sectors, …; say --columns bytes=NAME",
            ),
        ] {
            if layout.columns[what as usize].is_none() {
                return Err(missing);
            }
        }
        Ok(layout)
    }

    /// A request of the fields that `field` has by their places.
    pub(super) fn record<'a>(
        &self,
        field: &dyn Fn(usize) -> &'a [u8],
        names: &mut Names,
    ) -> Result<Record, Fault> {
        let column = |what: Meaning| self.columns[what as usize].map(|(at, unit)| (field(at), unit));
        let required = |what: Meaning| column(what).unwrap_or((b"", 1));
        let (time, unit) = required(Meaning::Time);
        let time = text::time("the time", time, unit)?;
        let kind = kind_of(required(Meaning::Op).0)?;
        let scaled = |name, (text, unit): (&[u8], u64)| {
            let number =
                text::number(name, text, ((1 << 63) - 1) / unit, "a whole number of less than 2^63 bytes")?;
            Ok::<u64, Fault>(number * unit)
        };
        let is_flush = kind == Kind::Flush;
        let (offset, bytes) = if is_flush {
            (0, 0)
        } else {
            (scaled("the place", required(Meaning::Place))?, scaled("the length", required(Meaning::Length))?)
        };
        let response = match column(Meaning::Response) {
            Some((text, unit)) if !text.is_empty() => Some(text::span("the response time", text, unit)?),
            _ => None,
        };
        let source = match column(Meaning::Process) {
            Some((text, _)) if !text.is_empty() => Some(text::word("the process", text)?),
            _ => None,
        };
        let device = match column(Meaning::Device) {
            Some((name, _)) if name.len() > 200 => {
                return Err(Fault::field("the device", name, "a name of up to 200 bytes"));
            }
            Some((name, _)) if !name.is_empty() => names.intern(|place| push!(place; name))?,
            _ => names.intern(|place| push!(place; "disk"))?,
        };
        Ok(Record { response, source, ..Record::new(time, device, kind, offset, bytes) })
    }
}

/// The operation of a word: `read`, `R`, `Write`, `WS`, `0` for a read and `1` for a write.
fn kind_of(word: &[u8]) -> Result<Kind, Fault> {
    let lower = word.to_ascii_lowercase();
    if let Some(kind) = Kind::named(&lower) {
        return Ok(kind);
    }
    match &lower[..] {
        b"r" | b"rd" | b"ra" | b"rs" | b"rm" | b"rsm" | b"ram" | b"0" | b"reads" => Ok(Kind::Read),
        b"w" | b"wr" | b"ws" | b"wm" | b"wsm" | b"wa" | b"wfs" | b"fws" | b"fwfs" | b"wfsm" | b"1"
        | b"writes" => Ok(Kind::Write),
        b"f" | b"ff" | b"fua" | b"sync" | b"fsync" | b"fdatasync" => Ok(Kind::Flush),
        b"d" | b"ds" | b"discard" | b"unmap" => Ok(Kind::Trim),
        _ => Err(Fault::field(
            "the operation",
            word,
            "read, write, flush or trim, their first letter, or 0 and 1",
        )),
    }
}

pub(super) struct TableReader<R> {
    lines: Lines<R>,
    layout: Option<TableColumns>,
    names: Names,
}

impl<R: BufRead> TableReader<R> {
    pub(super) fn new(lines: Lines<R>) -> TableReader<R> {
        TableReader { lines, layout: None, names: Names::default() }
    }
}

impl<R: BufRead> Source for TableReader<R> {
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        let layout = match self.layout {
            Some(layout) => layout,
            None => {
                let Some(line) = self.lines.next_line()? else { return Ok(None) };
                *self.layout.insert(TableColumns::parse(line).map_err(|what| Fault::Header { what })?)
            }
        };
        if self.lines.next_line()?.is_none() {
            return Ok(None);
        }
        let line = self.lines.whole();
        let fields: Vec<&[u8]> = split(line, layout.separator).collect();
        if fields.len() < layout.number {
            let form = "as many as the first line names";
            return Err(Fault::FieldCount { found: fields.len(), form, wanted: layout.number });
        }
        layout.record(&|at| fields[at], &mut self.names).map(Some)
    }

    fn position(&self) -> Place {
        self.lines.position()
    }

    fn header(&self) -> &Header {
        self.names.header()
    }
}

struct NamedColumnWriter(char);

impl Encode for NamedColumnWriter {
    fn begin(&mut self, _header: &Header, out: &mut Vec<u8>) {
        let names = ["time_s", "device", "op", "offset", "bytes", "response_s", "process"];
        for (at, name) in names.into_iter().enumerate() {
            if at > 0 {
                push!(out; self.0);
            }
            push!(out; name);
        }
        out.push(b'\n');
    }

    fn record(&mut self, record: &Record, header: &Header, out: &mut Vec<u8>) {
        let apart = self.0;
        push_time(out, record.time.0, 9);
        push!(out; apart);
        match plain_name(header, record.device).filter(|name| !name.contains([';', '\t'])) {
            Some(name) => push!(out; name),
            None => push!(out; "disk", record.device),
        }
        push!(out; apart, record.kind.name(), apart, record.offset, apart, record.bytes, apart);
        if let Some(Nanos(response)) = record.response {
            push_time(out, response, 9);
        }
        push!(out; apart);
        if let Some(source) = record.source {
            push!(out; source);
        }
        out.push(b'\n');
    }
}
