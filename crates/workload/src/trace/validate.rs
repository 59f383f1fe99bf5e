//! Validation traces: requests that a real drive once served, with the time that it took over each.
//!
//! One request a line, six fields separated by blanks: `R` or `W`, the action seen on the bus, first sector, sectors,
//! measured time in microseconds, think time in microseconds. The think time runs from this request's completion to the
//! next one's issue, so the trace is replayed closed, with one request outstanding. Empty lines are skipped.
//!
//! Times in the trace follow from the spans: the first request is issued at 0. Columns are written as in the traces of
//! 1999.
//!
//! *Source:* the validation data of DiskSim 4.0 (Bucy, Schindler, Schlosser and Ganger 2008).

use std::io::BufRead;

use headstack_model::{Instant, Nanos};

use super::closed::Held;
use super::error::{Fault, Place};
use super::text::{self, Lines, SECTOR, SECTORS, Separator, fields, push, push_time};
use super::{Carries, Encode, Encoding, Format, Header, Kind, Native, Record, Source, Span};

pub(super) const FORMAT: Format = Format {
    name: "validate",
    title: "DiskSim validate",
    extensions: &["trace", "validate"],
    encoding: Encoding::Text,
    form: FORM,
    note: "replayed closed, one request outstanding; a think time that is not known is the gap to the next request",
    carries: Carries {
        tick: 0,
        offset_grain: SECTOR,
        grain: SECTOR,
        longest: u32::MAX as u64 * SECTOR,
        devices: 1,
        response: Some(Span { tick: 1, longest: text::LATEST, always: true }),
        think: Some(Span { tick: 1, longest: text::LATEST, always: false }),
        ..Carries::LEAST
    },
    sniff: |head| text::first_line(head).is_some_and(|line| parse(line).is_ok()),
    read: |input| Box::new(Reader { lines: Lines::new(input), time: Instant::ZERO }),
    write: || Box::new(Writer(Held::default())),
};

const FORM: &str = "R|W action lbn sectors measured_us think_us";

struct Reader<R> {
    lines: Lines<R>,
    /// When the next request was issued.
    time: Instant,
}

impl<R: BufRead> Source for Reader<R> {
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        let record = Record { time: self.time, ..parse(line)? };
        for span in [record.response, record.think].into_iter().flatten() {
            self.time = self.time.saturating_add(span);
        }
        Ok(Some(record))
    }

    fn position(&self) -> Place {
        self.lines.position()
    }
}

/// One line as a record at time 0.
fn parse(line: &[u8]) -> Result<Record, Fault> {
    let [op, action, lbn, sectors, measured, think] = fields(line, Separator::Blanks, true, FORM)?;
    let kind = match op {
        b"R" => Kind::Read,
        b"W" => Kind::Write,
        other => return Err(Fault::field("the operation", other, "`R` or `W`")),
    };
    let first = text::number("lbn", lbn, SECTORS - 1, "a whole number below 2^54")?;
    let count = text::number("sectors", sectors, u32::MAX.into(), "a whole number from 1 to 4294967295")?;
    if count == 0 {
        return Err(Fault::field("sectors", sectors, "a whole number from 1 to 4294967295"));
    }
    let mut letters = [b' '; 4];
    letters.iter_mut().zip(action).for_each(|(letter, byte)| *letter = *byte);
    Ok(Record {
        response: Some(text::span("measured_us", measured, 1000)?),
        think: Some(text::span("think_us", think, 1000)?),
        native: Native::Validate { action: letters },
        ..Record::new(Instant::ZERO, 0, kind, first * SECTOR, count * SECTOR)
    })
}

struct Writer(Held);

impl Encode for Writer {
    fn record(&mut self, record: &Record, _header: &Header, out: &mut Vec<u8>) {
        self.0.step(Some(record)).iter().for_each(|held| write(held, out));
    }

    fn end(&mut self, _header: &Header, out: &mut Vec<u8>) {
        self.0.step(None).iter().for_each(|held| write(held, out));
    }
}

fn write(record: &Record, out: &mut Vec<u8>) {
    let action = match record.native {
        Native::Validate { action } => action,
        _ => *b"Any ",
    };
    let op = if record.kind == Kind::Read { "R " } else { "W " };
    push!(out; op, &action[..]);
    column(out, 10, |out| push!(out; record.offset / SECTOR));
    column(out, 4, |out| push!(out; record.bytes / SECTOR));
    for span in [record.response, record.think] {
        column(out, 13, |out| {
            push_time(out, span.unwrap_or(Nanos::ZERO).0, 3);
            push!(out; "00");
        });
    }
    out.push(b'\n');
}

/// Appends what `write` writes, padded with blanks on the left to a width, with at least one blank.
fn column(out: &mut Vec<u8>, width: usize, write: impl FnOnce(&mut Vec<u8>)) {
    let from = out.len();
    write(out);
    let blanks = width.saturating_sub(out.len() - from).max(1);
    out.extend(std::iter::repeat_n(b' ', blanks));
    out[from..].rotate_right(blanks);
}
