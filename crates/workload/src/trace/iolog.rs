//! fio's logs of requests, versions 2 and 3: a line with the version, then file and request actions separated by blanks.
//!
//! Version 2: `FILE add|open|close`, `FILE read|write|trim|sync|datasync OFFSET LENGTH`, and `FILE wait MICROSECONDS`,
//! which is read as time from the completion of the request before it to the next one: the log has no times, and is
//! replayed closed. Version 3 has the time in microseconds before each line, and no waits.
//!
//! *Source:* fio's HOWTO, section on the trace file format; microseconds as `write_iolog` of fio 3.33 writes them.

use std::collections::BTreeSet;
use std::io::BufRead;

use headstack_model::{Instant, Nanos};

use super::closed::Held;
use super::error::{Fault, Place};
use super::names::{Names, plain_name};
use super::text::{self, Lines, push};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Record, Source, Span};

pub(super) const FORMAT_2: Format = Format {
    name: "iolog2",
    title: "fio iolog, version 2",
    extensions: &["iolog", "log"],
    encoding: Encoding::Text,
    form: "file action offset length",
    note: "replayed closed, one request outstanding; a think time that is not known is the gap to the next request",
    carries: Carries {
        tick: 0,
        think: Some(Span { tick: TICK, longest: text::LATEST, always: false }),
        ..CARRIES
    },
    sniff: |head| text::first_line(head) == Some(VERSION_2.line),
    read: |input| Box::new(Reader::new(input, &VERSION_2)),
    write: || Box::new(Writer2::default()),
};

pub(super) const FORMAT_3: Format = Format {
    name: "iolog3",
    title: "fio iolog, version 3",
    extensions: &["iolog", "log"],
    encoding: Encoding::Text,
    form: "time_us file action offset length",
    note: "",
    carries: CARRIES,
    sniff: |head| text::first_line(head) == Some(VERSION_3.line),
    read: |input| Box::new(Reader::new(input, &VERSION_3)),
    write: || Box::new(Writer3::default()),
};

const CARRIES: Carries = Carries {
    tick: TICK,
    latest: text::LATEST,
    empty: true,
    longest: u32::MAX as u64,
    flush: true,
    trim: true,
    ..Carries::LEAST
};

/// A version: its first line, the error for another version, and whether each line has its time.
struct Version {
    line: &'static [u8],
    wrong: &'static str,
    timed: bool,
}

const VERSION_2: Version =
    Version { line: b"fio version 2 iolog", wrong: "is not `fio version 2 iolog`", timed: false };
const VERSION_3: Version =
    Version { line: b"fio version 3 iolog", wrong: "is not `fio version 3 iolog`", timed: true };
const TICK: u64 = 1000;

struct Reader<R> {
    lines: Lines<R>,
    names: Names,
    version: &'static Version,
    begun: bool,
    /// The last request of version 2, whose waits are being summed up.
    held: Option<Record>,
    /// When the next request of version 2 is issued.
    time: Instant,
}

enum Action {
    Request(Kind, u64, u64),
    Wait(Nanos),
    File,
}

impl<R: BufRead> Reader<R> {
    fn new(input: R, version: &'static Version) -> Reader<R> {
        let (lines, names) = (Lines::new(input), Names::default());
        Reader { lines, names, version, begun: false, held: None, time: Instant::ZERO }
    }

    /// The next line with its time, file and action; none at the end.
    fn next_line(&mut self) -> Result<Option<(Instant, u32, Action)>, Fault> {
        if !self.begun {
            match self.lines.next_line()? {
                None => return Ok(None),
                Some(line) if line == self.version.line => self.begun = true,
                Some(_) => return Err(Fault::Header { what: self.version.wrong }),
            }
        }
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        parse(line, self.version.timed, &mut self.names).map(Some)
    }

    /// The next request of version 2, once all waits behind it are read.
    fn next_waiting(&mut self) -> Result<Option<Record>, Fault> {
        loop {
            match self.next_line()? {
                None => return Ok(self.held.take()),
                Some((_, _, Action::File)) => {}
                Some((_, _, Action::Wait(span))) => {
                    self.time = self.time.saturating_add(span);
                    if let Some(think) = self.held.as_mut().and_then(|held| held.think.as_mut()) {
                        think.0 = think.0.saturating_add(span.0).min(text::LATEST);
                    }
                }
                Some((_, device, Action::Request(kind, offset, bytes))) => {
                    let record = Record::new(self.time, device, kind, offset, bytes);
                    let next = Record { think: Some(Nanos::ZERO), ..record };
                    if let Some(held) = self.held.replace(next) {
                        return Ok(Some(held));
                    }
                }
            }
        }
    }
}

impl<R: BufRead> Source for Reader<R> {
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        if !self.version.timed {
            return self.next_waiting();
        }
        while let Some((time, device, action)) = self.next_line()? {
            if let Action::Request(kind, offset, bytes) = action {
                return Ok(Some(Record::new(time, device, kind, offset, bytes)));
            }
        }
        Ok(None)
    }

    fn position(&self) -> Place {
        self.lines.position()
    }

    fn header(&self) -> &Header {
        self.names.header()
    }
}

fn parse(line: &[u8], timed: bool, names: &mut Names) -> Result<(Instant, u32, Action), Fault> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let found = || line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).count();
    let (form, wanted) =
        if timed { ("time_us file action offset length", 5) } else { ("file action offset length", 4) };
    let missing = || Fault::FieldCount { found: found(), form, wanted };
    let time =
        if timed { text::time("time_us", fields.next().ok_or_else(missing)?, TICK)? } else { Instant::ZERO };
    let file = fields.next().ok_or_else(missing)?;
    let name = fields.next().ok_or_else(missing)?;
    let kind = match name {
        b"add" | b"open" | b"close" | b"unlink" => return Ok((time, named(names, file)?, Action::File)),
        b"wait" if !timed => {
            let span = text::span("the wait", fields.next().ok_or_else(missing)?, TICK)?;
            return Ok((time, named(names, file)?, Action::Wait(span)));
        }
        b"sync" | b"datasync" => Kind::Flush,
        b"read" => Kind::Read,
        b"write" => Kind::Write,
        b"trim" => Kind::Trim,
        other => {
            let allowed = "read, write, trim, sync, datasync, wait (version 2), add, open, close or unlink";
            return Err(Fault::field("the action", other, allowed));
        }
    };
    let offset = text::offset("offset", fields.next().ok_or_else(missing)?)?;
    let bytes = text::offset("length", fields.next().ok_or_else(missing)?)?;
    if fields.next().is_some() {
        return Err(missing());
    }
    let (offset, bytes) = if kind == Kind::Flush { (0, 0) } else { (offset, bytes) };
    Ok((time, named(names, file)?, Action::Request(kind, offset, bytes)))
}

fn named(names: &mut Names, file: &[u8]) -> Result<u32, Fault> {
    names.intern(|name| push!(name; file))
}

#[derive(Default)]
struct Files {
    devices: BTreeSet<u32>,
    /// The names of the devices in the log, each once.
    names: Vec<Vec<u8>>,
    last: Option<u32>,
}

impl Files {
    /// Appends the lines that a new file needs, each behind its time.
    fn meet(&mut self, device: u32, time: Option<Instant>, header: &Header, out: &mut Vec<u8>) {
        // Most requests go where the one before went.
        if self.last.replace(device) == Some(device) || !self.devices.insert(device) {
            return;
        }
        let mut name = Vec::new();
        push_file(device, header, &mut name);
        if !self.names.contains(&name) {
            push_action(&name, " add\n", time, out);
            push_action(&name, " open\n", time, out);
            self.names.push(name);
        }
    }

    fn close(&self, time: Option<Instant>, out: &mut Vec<u8>) {
        self.names.iter().for_each(|name| push_action(name, " close\n", time, out));
    }
}

fn push_action(name: &[u8], action: &str, time: Option<Instant>, out: &mut Vec<u8>) {
    if let Some(time) = time {
        push!(out; time.0 / TICK, ' ');
    }
    push!(out; name, action);
}

fn push_file(device: u32, header: &Header, out: &mut Vec<u8>) {
    match plain_name(header, device) {
        Some(name) => push!(out; name),
        None => push!(out; "disk", device),
    }
}

fn push_request(record: &Record, header: &Header, out: &mut Vec<u8>) {
    let action = match record.kind {
        Kind::Read => " read ",
        Kind::Write => " write ",
        Kind::Trim => " trim ",
        Kind::Flush => " sync ",
    };
    push_file(record.device, header, out);
    push!(out; action, record.offset, ' ', record.bytes, '\n');
}

#[derive(Default)]
struct Writer2 {
    files: Files,
    held: Held,
}

impl Writer2 {
    fn write(&mut self, next: Option<&Record>, header: &Header, out: &mut Vec<u8>) {
        let Some(record) = self.held.step(next) else { return };
        self.files.meet(record.device, None, header, out);
        push_request(&record, header, out);
        let wait = record.think.unwrap_or(Nanos::ZERO).0 / TICK;
        if wait > 0 {
            push_file(record.device, header, out);
            push!(out; " wait ", wait, " 0\n");
        }
    }
}

impl Encode for Writer2 {
    fn begin(&mut self, _header: &Header, out: &mut Vec<u8>) {
        push!(out; VERSION_2.line, '\n');
    }

    fn record(&mut self, record: &Record, header: &Header, out: &mut Vec<u8>) {
        self.write(Some(record), header, out);
    }

    fn end(&mut self, header: &Header, out: &mut Vec<u8>) {
        self.write(None, header, out);
        self.files.close(None, out);
    }
}

#[derive(Default)]
struct Writer3 {
    files: Files,
    last: Instant,
}

impl Encode for Writer3 {
    fn begin(&mut self, _header: &Header, out: &mut Vec<u8>) {
        push!(out; VERSION_3.line, '\n');
    }

    fn record(&mut self, record: &Record, header: &Header, out: &mut Vec<u8>) {
        self.last = record.time;
        self.files.meet(record.device, Some(record.time), header, out);
        push!(out; record.time.0 / TICK, ' ');
        push_request(record, header, out);
    }

    fn end(&mut self, _header: &Header, out: &mut Vec<u8>) {
        self.files.close(Some(self.last), out);
    }
}
