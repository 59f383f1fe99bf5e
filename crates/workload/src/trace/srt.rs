//! HP's SRT traces: binary records after a text that ends in a form feed.
//!
//! Records of 32-bit words, highest byte first: size, version and type, seconds, microseconds, time from issue to start
//! and to completion in microseconds, bytes, first sector, device, type of driver, cylinder, flags, further
//! information, and from version 4 on the length of the queue. The device is its number in the second lowest byte, with
//! the driver's number and the section of the disk around it; the sector is counted from the start of the disk whatever
//! the section. The lowest bit of the flags says *read*. Records of the type *suspect* have one more word and are
//! skipped, as in DiskSim.
//!
//! *Source:* the header and records of the traces themselves, and the manual of DiskSim 4.0, section on input traces.

use std::io::{BufRead, Read};

use headstack_model::{Instant, Nanos};

use super::error::{Fault, Place};
use super::text::SECTOR;
use super::{Carries, Encode, Encoding, Format, Header, Kind, Native, Record, Source, Span};

pub(super) const FORMAT: Format = Format {
    name: "srt",
    title: "HP SRT (TR_IOREC-1.3)",
    extensions: &["srt"],
    encoding: Encoding::Binary,
    form: "a text that ends in byte 0x0C, then records of 13 or 14 words, highest byte first",
    note: "suspect records are skipped",
    carries: Carries {
        tick: 1000,
        latest: (u32::MAX as u64) * 1_000_000_000 + 999_999_000,
        empty: true,
        offset_grain: SECTOR,
        grain: SECTOR,
        reach: (1 << 32) * SECTOR,
        longest: (u32::MAX as u64) & !(SECTOR - 1),
        devices: 256,
        response: Some(Span { tick: 1000, longest: (u32::MAX as u64) * 1000, always: true }),
        ..Carries::LEAST
    },
    sniff: |head| head.starts_with(b"$$TR_IOREC") || head.starts_with(b"$$TR_"),
    read: |input| Box::new(Reader { input, header: Header::default(), byte: 0, next: 0, begun: false }),
    write: || Box::new(Writer),
};

/// The text before the records if no other trace's header is available.
const PREAMBLE: &[u8] = b"$$TR_IOREC-1.3 (IOAdaptor Upgrade Version)\0\nversion      = 1.3;\n\x0c";
/// The longest text before the records.
const LONGEST_PREAMBLE: u64 = 1 << 20;
const WORDS: usize = 14;
const SHORT: u32 = 1;
const SUSPECT: u32 = 4;
const READ: u32 = 1;

/// The words of a record that no other format has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    version: u32,
    start_us: u32,
    device: u32,
    driver: u32,
    cylinder: u32,
    flags: u32,
    info: u32,
    queue: u32,
}

impl Words {
    fn words_of(device: u32) -> Words {
        let device = (8 << 24) | (device << 8);
        Words { version: 4, start_us: 0, device, driver: 4, cylinder: 0, flags: 0, info: 0, queue: 0 }
    }

    fn number(&self) -> u32 {
        (self.device >> 8) & 0xff
    }
}

struct Reader<R> {
    input: R,
    header: Header,
    byte: u64,
    /// Where the next one does.
    next: u64,
    begun: bool,
}

impl<R: BufRead> Source for Reader<R> {
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        if !self.begun {
            self.begun = true;
            self.read_preamble()?;
        }
        loop {
            self.byte = self.next;
            let mut words = [0; WORDS + 1];
            let Some(size) = self.read_words(&mut words)? else { return Ok(None) };
            self.next += size as u64;
            match words[1] & 0xffff {
                SHORT => return record(&words, size).map(Some),
                SUSPECT => {}
                other => return Err(Fault::number("the type", other.into(), "1 (request) or 4 (suspect)")),
            }
        }
    }

    fn position(&self) -> Place {
        Place::Byte(self.byte)
    }

    fn header(&self) -> &Header {
        &self.header
    }
}

impl<R: BufRead> Reader<R> {
    fn read_preamble(&mut self) -> Result<(), Fault> {
        let mut bounded = self.input.by_ref().take(LONGEST_PREAMBLE);
        bounded.read_until(0x0c, &mut self.header.preamble)?;
        if self.header.preamble.last() != Some(&0x0c) {
            return Err(Fault::Header { what: "has no byte 0x0C to end it" });
        }
        self.next = self.header.preamble.len() as u64;
        Ok(())
    }

    fn read_words(&mut self, words: &mut [u32; WORDS + 1]) -> Result<Option<usize>, Fault> {
        let mut bytes = [0; (WORDS + 1) * 4];
        let Some(head) = super::binary::read_part(&mut self.input, &mut bytes, 0, 8)? else {
            return Ok(None);
        };
        let size = u32::from_be_bytes(head[..4].try_into().expect("it has four bytes")) as usize;
        let version = u16::from_be_bytes(head[4..6].try_into().expect("it has two bytes"));
        let suspect = u16::from_be_bytes(head[6..8].try_into().expect("it has two bytes")) == SUSPECT as u16;
        if !(1..=4).contains(&version) {
            return Err(Fault::Final { field: "the version", found: version.into(), allowed: "1 to 4" });
        }
        if size != 4 * (13 + usize::from(version == 4) + usize::from(suspect)) {
            let allowed = "52 bytes, 4 more from version 4 on and 4 more for a suspect record";
            return Err(Fault::Final { field: "the size", found: size as u64, allowed });
        }
        super::binary::read_part(&mut self.input, &mut bytes, 8, size)?;
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_be_bytes(bytes.try_into().expect("it has four bytes"));
        }
        Ok(Some(size))
    }
}

fn record(words: &[u32; WORDS + 1], size: usize) -> Result<Record, Fault> {
    let [_, id, seconds, us, start_us, stop_us, bytes, lbn, device, driver, cylinder, flags, info, queue, _] =
        *words;
    if us >= 1_000_000 {
        return Err(Fault::number("the microseconds", us.into(), "0 to 999999"));
    }
    if !bytes.is_multiple_of(SECTOR as u32) {
        return Err(Fault::number("the size in bytes", bytes.into(), "a multiple of 512"));
    }
    let queue = if size >= 4 * WORDS { queue } else { 0 };
    let native = Words { version: id >> 16, start_us, device, driver, cylinder, flags, info, queue };
    let kind = if flags & READ != 0 { Kind::Read } else { Kind::Write };
    let time = Instant(u64::from(seconds) * 1_000_000_000 + u64::from(us) * 1000);
    Ok(Record {
        response: Some(Nanos(u64::from(stop_us) * 1000)),
        native: Native::Srt(native),
        ..Record::new(time, native.number(), kind, u64::from(lbn) * SECTOR, u64::from(bytes))
    })
}

struct Writer;

impl Encode for Writer {
    fn begin(&mut self, header: &Header, out: &mut Vec<u8>) {
        let own = header.preamble.starts_with(b"$$TR_") && header.preamble.ends_with(b"\x0c");
        out.extend_from_slice(if own { &header.preamble } else { PREAMBLE });
    }

    fn record(&mut self, record: &Record, _header: &Header, out: &mut Vec<u8>) {
        let native = match record.native {
            Native::Srt(words) if words.number() == record.device => words,
            _ => Words::words_of(record.device),
        };
        let flags = (native.flags & !READ) | if record.kind == Kind::Read { READ } else { 0 };
        let size = 4 * (13 + u32::from(native.version == 4));
        let us = record.time.0 / 1000;
        let words = [
            size,
            (native.version << 16) | SHORT,
            (us / 1_000_000) as u32,
            (us % 1_000_000) as u32,
            native.start_us,
            record.response.map_or(0, |response| (response.0 / 1000) as u32),
            record.bytes as u32,
            (record.offset / SECTOR) as u32,
            native.device,
            native.driver,
            native.cylinder,
            flags,
            native.info,
            native.queue,
        ];
        for word in &words[..size as usize / 4] {
            out.extend_from_slice(&word.to_be_bytes());
        }
    }
}
