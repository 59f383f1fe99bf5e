//! CloudPhysics' traces of virtual SCSI disks: binary records of one disk, lowest byte first.
//!
//! Version 1, 32 bytes: serial number, bytes, scatter-gather elements, command, version, first sector, microseconds.
//! Version 2, 40 bytes: command and version first, and the response time in microseconds last. The version is the upper
//! byte of its field. Commands are SCSI's operation codes for reads, writes, cache synchronisation and unmap.
//!
//! *Source:* the record layouts of libCacheSim's reader for these traces (Waldspurger, Park, Garthwaite and Ahmad 2015
//! describe the traces); operation codes from SBC-3.

use std::io::BufRead;

use headstack_model::{Instant, Nanos};

use super::binary::read_part;
use super::error::{Fault, Place};
use super::text::{SECTOR, SECTORS};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Record, Source, Span};

pub(super) const FORMAT_1: Format = Format {
    name: "vscsi1",
    title: "CloudPhysics vscsi, version 1",
    extensions: &["vscsi", "vscsitrace"],
    encoding: Encoding::Binary,
    form: "records of 32 bytes, lowest byte first",
    note: "one disk",
    carries: CARRIES,
    sniff: |head| looks_like(head, &V1),
    read: |input| Box::new(Reader { input, layout: &V1, byte: 0, next: 0 }),
    write: || Box::new(Writer { layout: &V1, serial: 0 }),
};

pub(super) const FORMAT_2: Format = Format {
    name: "vscsi2",
    title: "CloudPhysics vscsi, version 2",
    extensions: &["vscsi", "vscsitrace"],
    encoding: Encoding::Binary,
    form: "records of 40 bytes, lowest byte first",
    note: "one disk",
    carries: Carries { response: Some(Span { tick: 1000, longest: 1 << 62, always: true }), ..CARRIES },
    sniff: |head| looks_like(head, &V2),
    read: |input| Box::new(Reader { input, layout: &V2, byte: 0, next: 0 }),
    write: || Box::new(Writer { layout: &V2, serial: 0 }),
};

const CARRIES: Carries = Carries {
    tick: 1000,
    offset_grain: SECTOR,
    longest: u32::MAX as u64,
    empty: true,
    devices: 1,
    flush: true,
    trim: true,
    ..Carries::LEAST
};

struct Layout {
    version: u8,
    size: usize,
    serial: usize,
    bytes: usize,
    command: usize,
    version_at: usize,
    lbn: usize,
    time: usize,
    response: Option<usize>,
}

const V1: Layout = Layout {
    version: 1,
    size: 32,
    serial: 0,
    bytes: 4,
    command: 12,
    version_at: 14,
    lbn: 16,
    time: 24,
    response: None,
};
const V2: Layout = Layout {
    version: 2,
    size: 40,
    serial: 4,
    bytes: 8,
    command: 0,
    version_at: 2,
    lbn: 16,
    time: 24,
    response: Some(32),
};

/// The command that is written for a kind, and all commands that are read as that kind.
const COMMANDS: [(Kind, &[u16]); 4] = [
    (Kind::Read, &[0x28, 0x08, 0x88, 0xa8]),
    (Kind::Write, &[0x2a, 0x0a, 0x8a, 0xaa]),
    (Kind::Flush, &[0x35, 0x91]),
    (Kind::Trim, &[0x42]),
];

/// Whether the first two records, as far as they are there, have the version and a known command.
fn looks_like(head: &[u8], layout: &Layout) -> bool {
    let mut records = head.chunks_exact(layout.size).take(2).peekable();
    records.peek().is_some()
        && records
            .all(|record| record[layout.version_at + 1] == layout.version && parse(record, layout).is_ok())
}

struct Reader<R> {
    input: R,
    layout: &'static Layout,
    byte: u64,
    next: u64,
}

impl<R: BufRead> Source for Reader<R> {
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        self.byte = self.next;
        let mut bytes = [0; V2.size];
        let Some(record) = read_part(&mut self.input, &mut bytes, 0, self.layout.size)? else {
            return Ok(None);
        };
        self.next += self.layout.size as u64;
        parse(record, self.layout).map(Some)
    }

    fn position(&self) -> Place {
        Place::Byte(self.byte)
    }
}

fn parse(record: &[u8], layout: &Layout) -> Result<Record, Fault> {
    let half = |at: usize| u16::from_le_bytes(record[at..at + 2].try_into().expect("it has two bytes"));
    let word = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("it has four bytes"));
    let long = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("it has eight bytes"));
    let nanos = |field, at: usize| match long(at).checked_mul(1000).filter(|nanos| *nanos <= 1 << 63) {
        Some(nanos) => Ok(nanos),
        None => Err(Fault::number(field, long(at), "up to 292 years in microseconds")),
    };
    let version = half(layout.version_at);
    if version >> 8 != u16::from(layout.version) {
        let allowed = if layout.version == 1 { "0x0100 to 0x01ff" } else { "0x0200 to 0x02ff" };
        return Err(Fault::number("the version", version.into(), allowed));
    }
    let command = half(layout.command);
    let known = COMMANDS.iter().find(|(_, codes)| codes.contains(&command));
    let Some((kind, _)) = known else {
        let allowed = "a read (40), write (42), cache synchronisation (53) or unmap (66)";
        return Err(Fault::number("the command", command.into(), allowed));
    };
    let lbn = long(layout.lbn);
    if lbn >= SECTORS {
        return Err(Fault::number("the first sector", lbn, "a number below 2^54"));
    }
    let response = layout.response.map(|at| nanos("the response time", at).map(Nanos)).transpose()?;
    let time = Instant(nanos("the time", layout.time)?);
    Ok(Record { response, ..Record::new(time, 0, *kind, lbn * SECTOR, word(layout.bytes).into()) })
}

struct Writer {
    layout: &'static Layout,
    serial: u32,
}

impl Encode for Writer {
    fn record(&mut self, record: &Record, _header: &Header, out: &mut Vec<u8>) {
        let layout = self.layout;
        let from = out.len();
        out.resize(from + layout.size, 0);
        let mut put = |at: usize, bytes: &[u8]| out[from + at..][..bytes.len()].copy_from_slice(bytes);
        let (_, codes) =
            COMMANDS.iter().find(|(kind, _)| *kind == record.kind).expect("every kind has a command");
        put(layout.serial, &self.serial.to_le_bytes());
        put(layout.bytes, &(record.bytes as u32).to_le_bytes());
        put(layout.command, &codes[0].to_le_bytes());
        put(layout.version_at, &(u16::from(layout.version) << 8).to_le_bytes());
        put(layout.lbn, &(record.offset / SECTOR).to_le_bytes());
        put(layout.time, &(record.time.0 / 1000).to_le_bytes());
        if let Some(at) = layout.response {
            put(at, &(record.response.unwrap_or(Nanos::ZERO).0 / 1000).to_le_bytes());
        }
        self.serial = self.serial.wrapping_add(1);
    }
}
