//! Block traces of Alibaba Cloud: one request a line, five fields separated by commas.
//!
//! Device, `R` or `W`, first byte, bytes, microseconds since 1970.
//!
//! *Source:* the description that accompanies the traces (Li, Wang, Lee and others 2020, *An In-Depth Analysis of Cloud Block
//! Storage Workloads in Large-Scale Production*).

use super::error::Fault;
use super::text::{self, Records, Separator, fields, push};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Record};

pub(super) const FORMAT: Format = Format {
    name: "alibaba",
    title: "Alibaba block CSV",
    extensions: &["csv"],
    encoding: Encoding::Text,
    form: FORM,
    note: "",
    carries: Carries {
        tick: TICK,
        latest: text::LATEST,
        empty: true,
        longest: u32::MAX as u64,
        ..Carries::LEAST
    },
    sniff: |head| text::first_line(head).is_some_and(|line| parse(line).is_ok()),
    read: |input| Box::new(Records::new(input, parse)),
    write: || Box::new(Writer),
};

const FORM: &str = "device,opcode,offset,length,time_us";
const TICK: u64 = 1000;

fn parse(line: &[u8]) -> Result<Record, Fault> {
    let [device, opcode, offset, length, time] = fields(line, Separator::Comma, true, FORM)?;
    let device = text::word("device", device)?;
    let kind = match opcode {
        b"R" => Kind::Read,
        b"W" => Kind::Write,
        other => return Err(Fault::field("opcode", other, "`R` or `W`")),
    };
    let offset = text::offset("offset", offset)?;
    let length = text::word("length", length)?;
    let time = text::time("time_us", time, TICK)?;
    Ok(Record::new(time, device, kind, offset, length.into()))
}

struct Writer;

impl Encode for Writer {
    fn record(&mut self, record: &Record, _header: &Header, out: &mut Vec<u8>) {
        let opcode = if record.kind == Kind::Read { ",R," } else { ",W," };
        push!(out; record.device, opcode, record.offset, ',', record.bytes, ',', record.time.0 / TICK, '\n');
    }
}
