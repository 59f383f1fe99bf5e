//! blktrace's binary traces: events of 48 bytes, each followed by its payload, whose length the event gives.
//!
//! An event has a magic number with the version, sequence number, time in nanoseconds, first sector, bytes, action, process, device,
//! processor, error, and the payload's length, in the byte order of the machine that made the trace. The upper half of the action is
//! the kind of the request, the lower half what happens to it. Files of several processors must be merged first
//! (`blkparse -d`). Passed-through commands and messages are skipped.
//!
//! *Source:* blktrace_api.h of Linux, version 7 of the format.

use std::io::BufRead;

use headstack_model::Instant;

use super::binary::read_part;
use super::error::{Fault, Place};
use super::events::{Completions, Event, LONGEST_RESPONSE, Pairing, kind_of};
use super::text::{SECTOR, SECTORS};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Numbering, Presence, Record, Source, Span};

pub(super) const FORMAT: Format = Format {
    name: "blktrace",
    title: "blktrace, binary, version 7",
    extensions: &["blktrace", "bin"],
    encoding: Encoding::Binary,
    form: "events of 48 bytes and their payload, in either byte order",
    note: "a request is taken at Q, or at D without any Q; Q and C are written",
    carries: Carries {
        offset_grain: SECTOR,
        longest: u32::MAX as u64,
        flush: true,
        trim: true,
        response: Some(Span { tick: 1, longest: LONGEST_RESPONSE, always: false }),
        source: Presence::Always,
        ..Carries::LEAST
    },
    sniff: |head| head.len() >= EVENT && order(head).is_some(),
    read: |input| {
        Box::new(Reader {
            input,
            header: Header { numbering: Numbering::MajorMinor, ..Header::default() },
            pairing: Pairing::default(),
            byte: 0,
            next: 0,
            ended: false,
        })
    },
    write: || Box::new(Writer { completions: Completions::default(), sequence: 0 }),
};

const EVENT: usize = 48;
/// The magic number without the version.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const TO_QUEUE: u32 = 1 << 20;
const OF_COMPLETION: u32 = 1 << 23;
const PASSED_THROUGH: u32 = 1 << 25;
const NOTICE: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;

/// Whether the trace is big-endian, by the magic number; `None` without it.
fn order(bytes: &[u8]) -> Option<bool> {
    let magic = bytes[..4].try_into().expect("it has four bytes");
    let is = |number: u32| number & !0xff == MAGIC;
    match (is(u32::from_le_bytes(magic)), is(u32::from_be_bytes(magic))) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    }
}

struct Reader<R> {
    input: R,
    header: Header,
    pairing: Pairing,
    byte: u64,
    next: u64,
    ended: bool,
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
            self.read_event()?;
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
    fn read_event(&mut self) -> Result<(), Fault> {
        self.byte = self.next;
        let mut bytes = [0; EVENT];
        if read_part(&mut self.input, &mut bytes, 0, EVENT)?.is_none() {
            self.ended = true;
            return Ok(());
        }
        let Some(big) = order(&bytes) else {
            let found = u32::from_le_bytes(bytes[..4].try_into().expect("it has four bytes"));
            let allowed = "0x65617407 in either byte order";
            return Err(Fault::Final { field: "the magic number", found: found.into(), allowed });
        };
        self.header.big_endian = big;
        let fields = Fields { bytes: &bytes, big };
        let payload = fields.half(46);
        self.next += EVENT as u64 + u64::from(payload);
        self.skip(payload.into())?;
        if let Some(event) = event(&fields)? {
            self.pairing.handle(event);
        }
        Ok(())
    }

    fn skip(&mut self, payload: usize) -> Result<(), Fault> {
        let mut left = payload;
        while left > 0 {
            let there = self.input.fill_buf()?.len().min(left);
            if there == 0 {
                let found = EVENT + payload - left;
                return Err(Fault::Truncated { found, wanted: EVENT + payload });
            }
            self.input.consume(there);
            left -= there;
        }
        Ok(())
    }
}

struct Fields<'a> {
    bytes: &'a [u8; EVENT],
    big: bool,
}

impl Fields<'_> {
    fn half(&self, at: usize) -> u16 {
        let bytes = self.bytes[at..at + 2].try_into().expect("it has two bytes");
        if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = self.bytes[at..at + 4].try_into().expect("it has four bytes");
        if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn long(&self, at: usize) -> u64 {
        let bytes = self.bytes[at..at + 8].try_into().expect("it has eight bytes");
        if self.big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }
}

/// Checks a time: a completion may be the longest response time after the latest arrival.
fn arrival_or_completion(time: u64, step: u32) -> Result<u64, Fault> {
    let (latest, allowed) = match step {
        COMPLETE => (Carries::LEAST.latest + LONGEST_RESPONSE, "up to 2^63 + 2^62 nanoseconds"),
        _ => (Carries::LEAST.latest, "up to 2^63 nanoseconds"),
    };
    if time <= latest { Ok(time) } else { Err(Fault::number("the time", time, allowed)) }
}

fn event(fields: &Fields<'_>) -> Result<Option<Event>, Fault> {
    let action = fields.word(28);
    let step = action & 0xffff;
    if action & (PASSED_THROUGH | NOTICE) != 0 || ![QUEUE, ISSUE, COMPLETE].contains(&step) {
        return Ok(None);
    }
    let (time, sector, bytes) = (fields.long(8), fields.long(16), fields.word(24));
    let is = |bit: u32| action & bit != 0;
    let Some(kind) = kind_of(is(DISCARD), is(READ), is(WRITE), is(FLUSH), bytes.into()) else {
        return Ok(None);
    };
    let time = arrival_or_completion(time, step)?;
    let offset = match kind {
        Kind::Flush => 0,
        _ if sector >= SECTORS => {
            return Err(Fault::number("the first sector", sector, "a number below 2^54"));
        }
        _ => sector * SECTOR,
    };
    let record = Record::new(Instant(time), fields.word(36), kind, offset, bytes.into());
    let record = Record { source: Some(fields.word(32)), ..record };
    Ok(Some(match step {
        QUEUE => Event::Queue(record),
        ISSUE => Event::Issue(record),
        _ => Event::Complete(record),
    }))
}

struct Writer {
    completions: Completions,
    sequence: u32,
}

impl Writer {
    fn push(&mut self, record: &Record, step: u32, big: bool, out: &mut Vec<u8>) {
        self.sequence = self.sequence.wrapping_add(1);
        let kind = match record.kind {
            Kind::Read => READ,
            Kind::Write => WRITE,
            Kind::Flush => FLUSH | WRITE,
            Kind::Trim => DISCARD | WRITE,
        };
        let words = |out: &mut Vec<u8>, words: &[u32]| {
            for word in words {
                out.extend_from_slice(&if big { word.to_be_bytes() } else { word.to_le_bytes() });
            }
        };
        let process = if step & 0xffff == QUEUE { record.source.unwrap_or(0) } else { 0 };
        words(out, &[MAGIC | VERSION, self.sequence]);
        for long in [record.time.0, record.offset / SECTOR] {
            out.extend_from_slice(&if big { long.to_be_bytes() } else { long.to_le_bytes() });
        }
        // Processor, error and payload are 0.
        words(out, &[record.bytes as u32, kind | step, process, record.device, 0, 0]);
    }

    fn complete(&mut self, until: Instant, big: bool, out: &mut Vec<u8>) {
        while let Some(record) = self.completions.next_until(until) {
            self.push(&record, OF_COMPLETION | COMPLETE, big, out);
        }
    }
}

impl Encode for Writer {
    fn record(&mut self, record: &Record, header: &Header, out: &mut Vec<u8>) {
        self.complete(record.time, header.big_endian, out);
        self.push(record, TO_QUEUE | QUEUE, header.big_endian, out);
        self.completions.add(record);
    }

    fn end(&mut self, header: &Header, out: &mut Vec<u8>) {
        self.complete(Instant::MAX, header.big_endian, out);
    }
}
