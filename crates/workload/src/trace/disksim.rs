//! DiskSim's ASCII traces: one request a line, five fields separated by blanks.
//!
//! Time in milliseconds, device, first sector, sectors, flags in hexadecimal whose lowest bit says *read*. The other
//! flags (critical in time, limited in time, asynchronous …) are kept where the same format is written again.
//!
//! *Source:* the manual of DiskSim 4.0 (Bucy, Schindler, Schlosser and Ganger 2008), section on input traces.

use super::error::Fault;
use super::text::{self, Records, SECTOR, SECTORS, Separator, fields, push, push_time};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Native, Record};

pub(super) const FORMAT: Format = Format {
    name: "disksim",
    title: "DiskSim ASCII",
    extensions: &["trace", "ascii"],
    encoding: Encoding::Text,
    form: FORM,
    note: "",
    carries: Carries {
        empty: true,
        offset_grain: SECTOR,
        grain: SECTOR,
        longest: (u32::MAX as u64) * SECTOR,
        ..Carries::LEAST
    },
    sniff,
    read: |input| Box::new(Records::new(input, parse)),
    write: || Box::new(Writer),
};

const FORM: &str = "time_ms device lbn sectors flags";
const READ: u32 = 1;

fn sniff(head: &[u8]) -> bool {
    text::first_line(head).is_some_and(|line| parse(line).is_ok())
}

fn parse(line: &[u8]) -> Result<Record, Fault> {
    let [time, device, lbn, sectors, flags] = fields(line, Separator::Blanks, true, FORM)?;
    let flags = std::str::from_utf8(flags)
        .ok()
        .and_then(|text| u32::from_str_radix(text, 16).ok())
        .ok_or_else(|| Fault::field("flags", flags, "a hexadecimal number of up to eight digits"))?;
    let kind = if flags & READ != 0 { Kind::Read } else { Kind::Write };
    let time = text::time("time_ms", time, 1_000_000)?;
    let device = text::word("device", device)?;
    let first = text::number("lbn", lbn, SECTORS - 1, "a whole number below 2^54")?;
    let bytes = text::sectors("sectors", sectors)?;
    Ok(Record { native: Native::DiskSim { flags }, ..Record::new(time, device, kind, first * SECTOR, bytes) })
}

struct Writer;

impl Encode for Writer {
    fn record(&mut self, record: &Record, _header: &Header, out: &mut Vec<u8>) {
        let flags = match record.native {
            Native::DiskSim { flags } => flags & !READ,
            _ => 0,
        } | if record.kind == Kind::Read { READ } else { 0 };
        push_time(out, record.time.0, 6);
        push!(out; '\t', record.device, '\t', record.offset / SECTOR, '\t', record.bytes / SECTOR, '\t');
        push!(out; format!("{flags:x}").as_str(), '\n');
    }
}
