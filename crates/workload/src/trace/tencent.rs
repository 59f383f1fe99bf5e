//! Block traces of Tencent Cloud (CBS): one request a line, five fields separated by commas.
//!
//! Seconds since 1970, first sector, sectors, 0 for a read or 1 for a write, volume.
//!
//! *Source:* the description that accompanies the traces (Zhang, Huang and others 2018, *Tencent Block Storage Traces*, at SNIA's
//! repository).

use super::error::Fault;
use super::text::{self, Records, SECTOR, Separator, fields, push};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Record};

pub(super) const FORMAT: Format = Format {
    name: "tencent",
    title: "Tencent block CSV",
    extensions: &["csv"],
    encoding: Encoding::Text,
    form: FORM,
    note: "",
    carries: Carries {
        tick: TICK,
        latest: text::LATEST,
        empty: true,
        offset_grain: SECTOR,
        grain: SECTOR,
        longest: u32::MAX as u64 * SECTOR,
        ..Carries::LEAST
    },
    sniff: |head| text::first_line(head).is_some_and(|line| parse(line).is_ok()),
    read: |input| Box::new(Records::new(input, parse)),
    write: || Box::new(Writer),
};

const FORM: &str = "time_s,offset,size,type,volume";
const TICK: u64 = 1_000_000_000;

fn parse(line: &[u8]) -> Result<Record, Fault> {
    let [time, offset, size, kind, volume] = fields(line, Separator::Comma, true, FORM)?;
    let time = text::time("time_s", time, TICK)?;
    let offset = text::sector("offset", offset)?;
    let bytes = text::sectors("size", size)?;
    let kind = match kind {
        b"0" => Kind::Read,
        b"1" => Kind::Write,
        other => return Err(Fault::field("type", other, "0 (read) or 1 (write)")),
    };
    let volume = text::word("volume", volume)?;
    Ok(Record::new(time, volume, kind, offset, bytes))
}

struct Writer;

impl Encode for Writer {
    fn record(&mut self, record: &Record, _header: &Header, out: &mut Vec<u8>) {
        let kind = u32::from(record.kind == Kind::Write);
        push!(out; record.time.0 / TICK, ',', record.offset / SECTOR, ',', record.bytes / SECTOR, ',', kind);
        push!(out; ',', record.device, '\n');
    }
}
