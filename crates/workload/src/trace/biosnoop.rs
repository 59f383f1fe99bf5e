//! Tables of `biosnoop`, of bcc and of libbpf: a line with the columns' names, then one request a line, in order of completion.
//!
//! `TIME(s)` is the time of the completion, or `TIME(ms)`; the request was issued `LAT(ms)` earlier. The name of the process (`COMM`) may
//! contain blanks; the columns after it are counted from the end of the line. The first letter of `T` that is R, W, D or F is the operation.
//! `biosnoop.bt` has the same table without places; only one to which the columns were added can be read.
//!
//! The requests are read in the order of their issue, as far as that is within 4,096 completions. Time begins with the issue of the first.
//!
//! *Source:* biosnoop.py of bcc, biosnoop of libbpf-tools, biosnoop.bt of bpftrace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::BufRead;

use headstack_model::{Instant, Nanos};

use super::error::{Fault, Place};
use super::names::{Names, plain_name};
use super::text::{self, Lines, SECTOR, push, push_time};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Presence, Record, Source, Span};

pub(super) const FORMAT: Format = Format {
    name: "biosnoop",
    title: "biosnoop (bcc)",
    extensions: &["biosnoop"],
    encoding: Encoding::Text,
    form: FORM,
    note: "begins with that line; columns may be missing or be more, but for SECTOR and BYTES; a time is that of the completion",
    carries: Carries {
        latest: text::LATEST / 2,
        offset_grain: SECTOR,
        longest: u32::MAX as u64,
        empty: true,
        flush: true,
        trim: true,
        response: Some(Span { tick: 1, longest: text::LATEST / 2, always: true }),
        source: Presence::Always,
        ..Carries::LEAST
    },
    sniff: |head| text::first_line(head).is_some_and(|line| Columns::parse(line).is_some()),
    read: |input| Box::new(BiosnoopReader::new(Lines::new(input))),
    write: || Box::new(BiosnoopWriter),
};

const FORM: &str = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)";
/// Completions within which the order of issue is restored.
const WITHIN: usize = 4096;

/// A place in a line, counted from its begin or, after the name of the process, from its end.
#[derive(Clone, Copy, Debug)]
enum LinePlace {
    FromStart(usize),
    FromEnd(usize),
}

#[derive(Clone, Copy, Debug)]
struct Columns {
    /// Nanoseconds of a unit of the time.
    unit: u64,
    time: LinePlace,
    process: Option<LinePlace>,
    disk: Option<LinePlace>,
    op: Option<LinePlace>,
    sector: Option<LinePlace>,
    bytes: Option<LinePlace>,
    latency: Option<LinePlace>,
    number: usize,
}

impl Columns {
    /// The columns that a first line names; `None` if it is none of this program.
    fn parse(line: &[u8]) -> Option<Columns> {
        let names: Vec<&[u8]> = words(line).collect();
        let unit = match *names.first()? {
            b"TIME(s)" => 1_000_000_000,
            b"TIME(ms)" => 1_000_000,
            _ => return None,
        };
        let comm = names.iter().position(|name| *name == b"COMM");
        let find = |wanted: &[u8]| {
            let at = names.iter().position(|name| *name == wanted)?;
            Some(match comm {
                Some(comm) if at > comm => LinePlace::FromEnd(names.len() - 1 - at),
                _ => LinePlace::FromStart(at),
            })
        };
        let latency = find(b"LAT(ms)");
        latency?;
        Some(Columns {
            unit,
            time: LinePlace::FromStart(0),
            process: find(b"PID"),
            disk: find(b"DISK"),
            op: find(b"T"),
            sector: find(b"SECTOR"),
            bytes: find(b"BYTES"),
            latency,
            number: names.len(),
        })
    }
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// A request that was read, by the time of its issue.
#[derive(Debug, PartialEq, Eq)]
struct Unsorted {
    issued: i128,
    line: u64,
    record: Record,
}

impl Ord for Unsorted {
    fn cmp(&self, other: &Unsorted) -> std::cmp::Ordering {
        (self.issued, self.line).cmp(&(other.issued, other.line))
    }
}

impl PartialOrd for Unsorted {
    fn partial_cmp(&self, other: &Unsorted) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

struct BiosnoopReader<R> {
    lines: Lines<R>,
    columns: Option<Columns>,
    names: Names,
    waiting: BinaryHeap<Reverse<Unsorted>>,
    /// What is added to all times, so that the first is not before 0.
    shift: Option<i128>,
    is_over: bool,
    last: Place,
}

impl<R: BufRead> BiosnoopReader<R> {
    fn new(lines: Lines<R>) -> BiosnoopReader<R> {
        BiosnoopReader {
            lines,
            columns: None,
            names: Names::default(),
            waiting: BinaryHeap::new(),
            shift: None,
            is_over: false,
            last: Place::Line(1),
        }
    }

    /// Reads one line more; `false` at the end.
    fn read_line(&mut self) -> Result<bool, Fault> {
        let Some(line) = self.lines.next_line()? else { return Ok(false) };
        let columns = match self.columns {
            Some(columns) => columns,
            None => {
                self.columns = Some(header(line)?);
                return Ok(true);
            }
        };
        let (issued, record) = parse(line, &columns, &mut self.names)?;
        let Place::Line(line) = self.lines.position() else { unreachable!("a text has lines") };
        self.waiting.push(Reverse(Unsorted { issued, line, record }));
        Ok(true)
    }
}

impl<R: BufRead> Source for BiosnoopReader<R> {
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        while !self.is_over && self.waiting.len() < WITHIN {
            match self.read_line() {
                Ok(more) => self.is_over = !more,
                Err(fault) => {
                    self.last = self.lines.position();
                    return Err(fault);
                }
            }
        }
        let Some(Reverse(next)) = self.waiting.pop() else { return Ok(None) };
        let shift = *self.shift.get_or_insert((-next.issued).max(0));
        let time = Instant((next.issued + shift).max(0) as u64);
        self.last = Place::Line(next.line);
        Ok(Some(Record { time, ..next.record }))
    }

    fn position(&self) -> Place {
        self.last
    }

    fn header(&self) -> &Header {
        self.names.header()
    }
}

fn header(line: &[u8]) -> Result<Columns, Fault> {
    let columns = Columns::parse(line).ok_or(Fault::Header { what: "has no columns TIME(s) and LAT(ms)" })?;
    if columns.sector.is_none() || columns.bytes.is_none() || columns.op.is_none() {
        let what = "has no columns T, SECTOR and BYTES, as that of biosnoop.bt, which says times alone; trace with biosnoop of bcc";
        return Err(Fault::Header { what });
    }
    Ok(columns)
}

/// A request and the time of its issue, in nanoseconds of the trace's clock; that is negative for those issued before the first completion.
fn parse(line: &[u8], columns: &Columns, names: &mut Names) -> Result<(i128, Record), Fault> {
    let fields: Vec<&[u8]> = words(line).collect();
    if fields.len() + 1 < columns.number {
        return Err(Fault::FieldCount { found: fields.len(), form: FORM, wanted: columns.number });
    }
    let field = |column: LinePlace| match column {
        LinePlace::FromStart(at) => fields[at.min(fields.len() - 1)],
        LinePlace::FromEnd(at) => fields[fields.len() - 1 - at.min(fields.len() - 1)],
    };
    let get = |column: Option<LinePlace>| column.map(field).unwrap_or_default();
    let completed = text::time("TIME", field(columns.time), columns.unit)?;
    let response = text::span("LAT(ms)", get(columns.latency), 1_000_000)?;
    let bytes = text::word("BYTES", get(columns.bytes))?;
    let kind = kind_of(get(columns.op), bytes)?;
    let offset = text::sector("SECTOR", get(columns.sector))?;
    let source = match columns.process {
        Some(process) => Some(text::word("PID", field(process))?),
        None => None,
    };
    let device = names.intern(|name| match columns.disk {
        Some(disk) => push!(name; field(disk)),
        None => push!(name; "disk"),
    })?;
    let (offset, bytes) = if kind == Kind::Flush { (0, 0) } else { (offset, u64::from(bytes)) };
    let record = Record::new(Instant::ZERO, device, kind, offset, bytes);
    let issued = i128::from(completed.0) - i128::from(response.0);
    Ok((issued, Record { response: Some(response), source, ..record }))
}

/// The operation of `R`, `W`, or the kernel's letters: `WS`, `RA`, `FWS`, `D`.
fn kind_of(flags: &[u8], bytes: u32) -> Result<Kind, Fault> {
    let wrong = || Fault::field("T", flags, "R, W, D or F, or the kernel's letters");
    if flags.iter().any(|byte| !b"RWDFSAMNE".contains(byte)) {
        return Err(wrong());
    }
    match flags.iter().find(|byte| b"RWD".contains(byte)) {
        Some(b'R') => Ok(Kind::Read),
        Some(b'D') => Ok(Kind::Trim),
        Some(_) if bytes == 0 && flags.starts_with(b"F") => Ok(Kind::Flush),
        Some(_) => Ok(Kind::Write),
        None if flags.contains(&b'F') => Ok(Kind::Flush),
        None => Err(wrong()),
    }
}

struct BiosnoopWriter;

impl Encode for BiosnoopWriter {
    fn begin(&mut self, _header: &Header, out: &mut Vec<u8>) {
        push!(out; "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)\n");
    }

    fn record(&mut self, record: &Record, header: &Header, out: &mut Vec<u8>) {
        let response = record.response.unwrap_or(Nanos::ZERO).0;
        push_time(out, record.time.0 + response, 9);
        push!(out; " - ", record.source.unwrap_or(0), ' ');
        match plain_name(header, record.device) {
            Some(name) => push!(out; name),
            None => push!(out; "disk", record.device),
        }
        let op = match record.kind {
            Kind::Read => " R ",
            Kind::Write => " W ",
            Kind::Flush => " F ",
            Kind::Trim => " D ",
        };
        push!(out; op, record.offset / SECTOR, ' ', record.bytes, ' ');
        push_time(out, response, 6);
        out.push(b'\n');
    }
}
