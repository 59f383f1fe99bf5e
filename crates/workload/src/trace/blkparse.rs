//! The output of blkparse for a block trace: one event a line, in its default columns.
//!
//! `MAJOR,MINOR PROCESSOR SEQUENCE SECONDS PROCESS ACTION RWBS SECTOR + SECTORS [NAME]`. Of RWBS the letters D
//! (discard), R, W and F (flush) are read; a flush with data is read as a write. Actions other
//! than Q, D and C, and the summary at the end, are skipped.
//!
//! *Source:* blkparse(1), section on the output and its formatting.

use std::io::BufRead;

use headstack_model::Instant;

use super::error::{Fault, Place};
use super::events::{Completions, Event, LONGEST_RESPONSE, Pairing, kind_of};
use super::record::MINOR_BITS;
use super::text::{self, Lines, SECTOR, pad, push, push_number, push_right, push_time};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Numbering, Presence, Record, Source, Span};

pub(super) const FORMAT: Format = Format {
    name: "blkparse",
    title: "blkparse text",
    extensions: &["blkparse", "txt"],
    encoding: Encoding::Text,
    form: FORM,
    note: "a request is taken at Q, or at D without any Q; Q and C are written; lengths are whole sectors",
    carries: Carries {
        offset_grain: SECTOR,
        grain: SECTOR,
        longest: u32::MAX as u64 & !(SECTOR - 1),
        flush: true,
        trim: true,
        response: Some(Span { tick: 1, longest: LONGEST_RESPONSE, always: false }),
        source: Presence::Always,
        ..Carries::LEAST
    },
    sniff: |head| {
        let line =
            text::first_line(head).filter(|line| matches!(parse(line), Ok(Line::Event(_) | Line::Other)));
        line.is_some()
    },
    read: |input| Box::new(Reader { lines: Lines::new(input), pairing: Pairing::default(), ended: false }),
    write: || Box::new(Writer { completions: Completions::default(), sequence: 0 }),
};

const FORM: &str = "major,minor cpu sequence time_s process action rwbs sector + sectors [name]";

static HEADER: Header =
    Header { preamble: Vec::new(), big_endian: false, names: Vec::new(), numbering: Numbering::MajorMinor };

struct Reader<R> {
    lines: Lines<R>,
    pairing: Pairing,
    ended: bool,
}

enum Line {
    Event(Event),
    Other,
    Summary,
}

impl<R: BufRead> Source for Reader<R> {
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        loop {
            if let Some(record) = self.pairing.next_complete(self.ended) {
                return Ok(Some(record));
            }
            if self.ended {
                return Ok(None);
            }
            match self.lines.next_line()?.map(parse).transpose()? {
                Some(Line::Event(event)) => self.pairing.handle(event),
                Some(Line::Other) => {}
                Some(Line::Summary) | None => self.ended = true,
            }
        }
    }

    fn position(&self) -> Place {
        self.lines.position()
    }

    fn header(&self) -> &Header {
        &HEADER
    }
}

fn parse(line: &[u8]) -> Result<Line, Fault> {
    if line.starts_with(b"CPU") || line.starts_with(b"Total") {
        return Ok(Line::Summary);
    }
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let mut count = 0;
    let mut next = || {
        count += 1;
        fields.next().ok_or(Fault::FieldCount { found: count - 1, form: FORM, wanted: 10 })
    };
    let device = device(next()?)?;
    let (_cpu, _sequence) = (next()?, next()?);
    let time = next()?;
    let process = next()?;
    let action = next()?;
    if ![&b"Q"[..], b"D", b"C"].contains(&action) {
        // A valid time shows that it is an event at all.
        text::time("time_s", time, 1_000_000_000)?;
        return Ok(Line::Other);
    }
    let letters = next()?;
    let has = |letter: u8| letters.contains(&letter);
    let (sector, bytes) = match next().unwrap_or(b"[") {
        // Without data, a name or an error follows at once.
        name if name.starts_with(b"[") => (0, 0),
        sector => (text::sector("sector", sector)?, length(next().ok(), next().ok())?),
    };
    let Some(kind) = kind_of(has(b'D'), has(b'R'), has(b'W'), has(b'F'), bytes) else {
        return Ok(Line::Other);
    };
    let time = text::time("time_s", time, 1_000_000_000)?;
    let source = Some(text::word("process", process)?);
    let offset = if kind == Kind::Flush { 0 } else { sector };
    let record = Record { source, ..Record::new(time, device, kind, offset, bytes) };
    Ok(Line::Event(match action {
        b"Q" => Event::Queue(record),
        b"D" => Event::Issue(record),
        _ => Event::Complete(record),
    }))
}

/// The bytes of `+ SECTORS`; zero if the fields are different.
fn length(plus: Option<&[u8]>, sectors: Option<&[u8]>) -> Result<u64, Fault> {
    match (plus, sectors) {
        (Some(b"+"), Some(sectors)) => text::sectors("sectors", sectors),
        _ => Ok(0),
    }
}

fn device(text: &[u8]) -> Result<u32, Fault> {
    let parts = std::str::from_utf8(text).ok().and_then(|text| text.split_once(','));
    let number = |part: &str, bits: u32| part.parse::<u32>().ok().filter(|number| *number < 1 << bits);
    let found = parts.and_then(|(major, minor)| {
        Some((number(major, 32 - MINOR_BITS)? << MINOR_BITS) | number(minor, MINOR_BITS)?)
    });
    found.ok_or_else(|| Fault::field("the device", text, "MAJOR,MINOR with numbers up to 4095 and 1048575"))
}

struct Writer {
    completions: Completions,
    sequence: u32,
}

impl Writer {
    fn push(&mut self, record: &Record, queued: bool, out: &mut Vec<u8>) {
        self.sequence = self.sequence.wrapping_add(1);
        let (major, minor) = (record.device >> MINOR_BITS, record.device & ((1 << MINOR_BITS) - 1));
        let process = if queued { record.source.unwrap_or(0) } else { 0 };
        let letters = match record.kind {
            Kind::Read => "  R ",
            Kind::Write => "  W ",
            Kind::Flush => "FWS ",
            Kind::Trim => "  D ",
        };
        push_right(out, major.into(), 3);
        out.push(b',');
        let from = out.len();
        push_number(out, minor.into());
        pad(out, from, 3);
        push!(out; "  0 ");
        push_right(out, self.sequence.into(), 8);
        out.push(b' ');
        push_right(out, record.time.0 / 1_000_000_000, 5);
        let from = out.len();
        push_time(out, record.time.0 % 1_000_000_000, 9);
        // The whole second was written before.
        out.remove(from);
        out.push(b' ');
        push_right(out, process.into(), 5);
        push!(out; if queued { "  Q " } else { "  C " }, letters);
        if record.kind != Kind::Flush {
            push!(out; record.offset / SECTOR, " + ", record.bytes / SECTOR, ' ');
        }
        push!(out; if queued { "[headstack]\n" } else { "[0]\n" });
    }

    fn complete(&mut self, until: Instant, out: &mut Vec<u8>) {
        while let Some(record) = self.completions.next_until(until) {
            self.push(&record, false, out);
        }
    }
}

impl Encode for Writer {
    fn record(&mut self, record: &Record, _header: &Header, out: &mut Vec<u8>) {
        self.complete(record.time, out);
        self.push(record, true, out);
        self.completions.add(record);
    }

    fn end(&mut self, _header: &Header, out: &mut Vec<u8>) {
        self.complete(Instant::MAX, out);
    }
}
