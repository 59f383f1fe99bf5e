//! Headstack's own traces: a line with the columns' names, then one request a line, in eight columns separated by commas.
//!
//! Time in nanoseconds, device (a number or a name), operation, first byte, bytes, response time and think time in
//! nanoseconds, process. The last three may be empty. The format holds every field of a request that is not specific to one other
//! format. Further columns may follow, as in a simulation's table of requests; they are skipped.

use std::io::BufRead;

use headstack_model::Nanos;

use super::error::{Fault, Place};
use super::names::{Names, plain_name};
use super::text::{self, Lines, Separator, fields, push};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Presence, Record, Source, Span};

pub(super) const FORMAT: Format = Format {
    name: "headstack",
    title: "Headstack CSV",
    extensions: &["csv"],
    encoding: Encoding::Text,
    form: FORM,
    note: "begins with that line; a device is a number or a name; the last three columns may be empty; further columns, also named, are ignored",
    carries: Carries {
        latest: text::LATEST,
        empty: true,
        flush: true,
        trim: true,
        response: Some(SPAN),
        think: Some(SPAN),
        source: Presence::Sometimes,
        ..Carries::LEAST
    },
    sniff: |head| text::first_line(head).is_some_and(|line| columns(line).is_some()),
    read: |input| Box::new(Reader { lines: Lines::new(input), names: None, begun: false, more: false }),
    write: || Box::new(Writer),
};

const FORM: &str = "time_ns,device,op,offset,bytes,response_ns,think_ns,process";
const SPAN: Span = Span { tick: 1, longest: text::LATEST, always: false };

/// Whether a line has the names of the columns, and then whether there are more columns than are read.
fn columns(line: &[u8]) -> Option<bool> {
    match line.strip_prefix(FORM.as_bytes())? {
        [] => Some(false),
        [b',', ..] => Some(true),
        _ => None,
    }
}

fn read_columns(line: &[u8]) -> &[u8] {
    let mut commas = line.iter().enumerate().filter(|(_, byte)| **byte == b',');
    commas.nth(7).map_or(line, |(end, _)| &line[..end])
}

struct Reader<R> {
    lines: Lines<R>,
    /// The names of the devices, once the first one is known to have a name or a number.
    names: Option<Devices>,
    begun: bool,
    /// Whether there are further columns, which are not read.
    more: bool,
}

enum Devices {
    Numbered,
    Named(Names),
}

impl<R: BufRead> Source for Reader<R> {
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        if !self.begun {
            match self.lines.next_line()? {
                None => return Ok(None),
                Some(line) => {
                    self.more = columns(line).ok_or(Fault::Header { what: HEADER })?;
                    self.begun = true;
                }
            }
        }
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        parse(if self.more { read_columns(line) } else { line }, &mut self.names).map(Some)
    }

    fn position(&self) -> Place {
        self.lines.position()
    }

    fn header(&self) -> &Header {
        match &self.names {
            Some(Devices::Named(names)) => names.header(),
            _ => &super::NOTHING,
        }
    }
}

const HEADER: &str = "is not `time_ns,device,op,offset,bytes,response_ns,think_ns,process`";

fn parse(line: &[u8], names: &mut Option<Devices>) -> Result<Record, Fault> {
    let [time, name, op, offset, bytes, response, think, process] =
        fields(line, Separator::Comma, true, FORM)?;
    let span = |field, text: &[u8]| match text {
        [] => Ok(None),
        text => text::span(field, text, 1).map(Some),
    };
    let time = text::time("time_ns", time, 1)?;
    let kind = Kind::named(op).ok_or_else(|| Fault::field("op", op, "`read`, `write`, `flush` or `trim`"))?;
    let offset = text::offset("offset", offset)?;
    let bytes = text::offset("bytes", bytes)?;
    let (response, think) = (span("response_ns", response)?, span("think_ns", think)?);
    let source = if process.is_empty() { None } else { Some(text::word("process", process)?) };
    let numbered = !name.is_empty() && name.iter().all(u8::is_ascii_digit);
    let device = match names
        .get_or_insert_with(|| if numbered { Devices::Numbered } else { Devices::Named(Names::default()) })
    {
        Devices::Numbered => text::word("device", name)?,
        Devices::Named(_) if name.is_empty() || name.len() > 200 => {
            return Err(Fault::field("device", name, "a number, or a name of up to 200 bytes"));
        }
        Devices::Named(names) => names.intern(|place| push!(place; name))?,
    };
    Ok(Record { response, think, source, ..Record::new(time, device, kind, offset, bytes) })
}

struct Writer;

impl Encode for Writer {
    fn begin(&mut self, _header: &Header, out: &mut Vec<u8>) {
        push!(out; FORM, '\n');
    }

    fn record(&mut self, record: &Record, header: &Header, out: &mut Vec<u8>) {
        push!(out; record.time.0, ',');
        match (header.names.is_empty(), plain_name(header, record.device)) {
            (false, Some(name)) => push!(out; name),
            (false, None) => push!(out; "disk", record.device),
            (true, _) => push!(out; record.device),
        }
        push!(out; ',', record.kind.name(), ',', record.offset, ',', record.bytes);
        let nanos = |span: Nanos| span.0;
        for number in [record.response.map(nanos), record.think.map(nanos), record.source.map(u64::from)] {
            out.push(b',');
            if let Some(number) = number {
                push!(out; number);
            }
        }
        out.push(b'\n');
    }
}
