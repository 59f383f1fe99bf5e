//! Traces of Microsoft Research Cambridge: one request a line, seven fields separated by commas.
//!
//! Time as a Windows file time (100 ns since 1601), host, disk, `Read` or `Write`, first byte, bytes, response time in
//! 100 ns. A device is a host and a disk: `usr.0`.
//!
//! *Source:* the description that accompanies the traces (Narayanan, Donnelly and Rowstron 2008, at SNIA's repository).

use std::io::BufRead;

use headstack_model::Nanos;

use super::error::{Fault, Place};
use super::names::Names;
use super::text::{self, Lines, Separator, fields, push};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Record, Source, Span};

pub(super) const FORMAT: Format = Format {
    name: "msr",
    title: "MSR Cambridge CSV",
    extensions: &["csv"],
    encoding: Encoding::Text,
    form: FORM,
    note: "a device is called HOST.DISK",
    carries: Carries {
        tick: TICK,
        latest: text::LATEST,
        empty: true,
        longest: u32::MAX as u64,
        response: Some(Span { tick: TICK, longest: text::LATEST, always: true }),
        ..Carries::LEAST
    },
    sniff: |head| text::first_line(head).is_some_and(|line| parse(line, &mut Names::default()).is_ok()),
    read: |input| Box::new(Reader { lines: Lines::new(input), names: Names::default() }),
    write: || Box::new(Writer),
};

const FORM: &str = "time,host,disk,type,offset,bytes,response";
const TICK: u64 = 100;

struct Reader<R> {
    lines: Lines<R>,
    names: Names,
}

impl<R: BufRead> Source for Reader<R> {
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        parse(line, &mut self.names).map(Some)
    }

    fn position(&self) -> Place {
        self.lines.position()
    }

    fn header(&self) -> &Header {
        self.names.header()
    }
}

fn parse(line: &[u8], names: &mut Names) -> Result<Record, Fault> {
    let [time, host, disk, kind, offset, bytes, response] = fields(line, Separator::Comma, true, FORM)?;
    let time = text::time("time", time, TICK)?;
    if host.is_empty() || host.len() > 200 {
        return Err(Fault::field("host", host, "a name of up to 200 bytes"));
    }
    let disk = text::word("disk", disk)?;
    let kind = match kind {
        b"Read" => Kind::Read,
        b"Write" => Kind::Write,
        other => return Err(Fault::field("type", other, "`Read` or `Write`")),
    };
    let offset = text::offset("offset", offset)?;
    let bytes = text::word("bytes", bytes)?;
    let response = text::span("response", response, TICK)?;
    let device = names.intern(|name| push!(name; host, '.', disk))?;
    Ok(Record { response: Some(response), ..Record::new(time, device, kind, offset, bytes.into()) })
}

struct Writer;

impl Encode for Writer {
    fn record(&mut self, record: &Record, header: &Header, out: &mut Vec<u8>) {
        push!(out; record.time.0 / TICK, ',');
        let name = header.names.get(record.device as usize).map(String::as_str);
        let parts = name.and_then(|name| name.rsplit_once('.'));
        match parts.filter(|(host, disk)| is_host(host) && disk.parse::<u32>().is_ok()) {
            Some((host, disk)) => push!(out; host, ',', disk),
            None => push!(out; "disk,", record.device),
        }
        let kind = if record.kind == Kind::Read { ",Read," } else { ",Write," };
        let response = record.response.unwrap_or(Nanos::ZERO).0 / TICK;
        push!(out; kind, record.offset, ',', record.bytes, ',', response, '\n');
    }
}

fn is_host(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b',';
    !name.is_empty() && name.len() <= 200 && name.bytes().all(plain)
}
