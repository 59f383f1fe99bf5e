//! Traces of the Storage Performance Council, as the UMass repository holds them: one request a line, five fields
//! separated by commas.
//!
//! Application-specific unit, first sector, bytes, `R` or `W` in either case, seconds. Fields behind the fifth are
//! optional in the format and are skipped.
//!
//! *Source:* SPC Trace File Format Specification, revision 1.0.1 (Storage Performance Council 2002).

use super::error::Fault;
use super::text::{self, Records, SECTOR, Separator, fields, push, push_time};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Record};

pub(super) const FORMAT: Format = Format {
    name: "spc",
    title: "SPC-1 (UMass)",
    extensions: &["spc"],
    encoding: Encoding::Text,
    form: FORM,
    note: "the first byte is that of a sector of 512 bytes, the length is free; fields behind the fifth are ignored",
    carries: Carries { empty: true, offset_grain: SECTOR, longest: u32::MAX as u64, ..Carries::LEAST },
    sniff: |head| text::first_line(head).is_some_and(|line| parse(line).is_ok()),
    read: |input| Box::new(Records::new(input, parse)),
    write: || Box::new(Writer),
};

const FORM: &str = "asu,lba,bytes,opcode,time_s";

fn parse(line: &[u8]) -> Result<Record, Fault> {
    let [unit, lba, bytes, opcode, time] = fields(line, Separator::Comma, false, FORM)?;
    let unit = text::word("asu", unit)?;
    let offset = text::sector("lba", lba)?;
    let bytes = text::word("bytes", bytes)?;
    let kind = match opcode {
        b"R" | b"r" => Kind::Read,
        b"W" | b"w" => Kind::Write,
        other => return Err(Fault::field("opcode", other, "`R` or `W`")),
    };
    let time = text::time("time_s", time, 1_000_000_000)?;
    Ok(Record::new(time, unit, kind, offset, bytes.into()))
}

struct Writer;

impl Encode for Writer {
    fn record(&mut self, record: &Record, _header: &Header, out: &mut Vec<u8>) {
        let opcode = if record.kind == Kind::Read { 'R' } else { 'W' };
        push!(out; record.device, ',', record.offset / SECTOR, ',', record.bytes, ',', opcode, ',');
        let whole_us = record.time.0.is_multiple_of(1000);
        push_time(out, record.time.0, 9);
        if whole_us {
            // Real traces have microseconds.
            out.truncate(out.len() - 3);
        }
        out.push(b'\n');
    }
}
