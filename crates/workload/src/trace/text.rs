//! Lines, fields and numbers of the formats that are text: bytes in, numbers out, one line held at a time.

use std::io::{BufRead, Read};

use headstack_model::{Instant, Nanos};

use super::error::{Fault, LONGEST_LINE, Place};
use super::{Record, Source};

/// The latest accepted time: 500 years, so that it fits in nanoseconds.
pub(super) const LATEST: u64 = 500 * 366 * 86_400 * 1_000_000_000;
/// The allowed values of a time.
const A_TIME: &str = "a time from 0 to 500 years";
/// Sector of the formats that count in sectors.
pub(super) const SECTOR: u64 = 512;
/// More sectors than any device has: below it, bytes can be counted too.
pub(super) const SECTORS: u64 = 1 << 54;

#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    text: Vec<u8>,
    line: u64,
    /// Whether the current line was longer than the buffer, so that its rest comes first.
    within: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Lines<R> {
        Lines { input, text: Vec::with_capacity(256), line: 0, within: false }
    }

    pub(super) fn position(&self) -> Place {
        Place::Line(self.line.max(1))
    }

    /// The next non-empty line, without the blanks at its ends; `None` at the end.
    pub(super) fn next_line(&mut self) -> Result<Option<&[u8]>, Fault> {
        loop {
            if std::mem::take(&mut self.within) {
                self.input.skip_until(b'\n')?;
            }
            self.line += 1;
            self.text.clear();
            let mut bounded = self.input.by_ref().take(LONGEST_LINE as u64 + 1);
            if bounded.read_until(b'\n', &mut self.text)? == 0 {
                return Ok(None);
            }
            if self.text.len() > LONGEST_LINE {
                self.within = self.text.last() != Some(&b'\n');
                return Err(Fault::TooLong);
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(Some(self.text.trim_ascii()));
            }
        }
    }
}

impl<R> Lines<R> {
    /// The line that was read last, with its blanks: some are separators.
    pub(super) fn whole(&self) -> &[u8] {
        let text = self.text.strip_suffix(b"\n").unwrap_or(&self.text);
        text.strip_suffix(b"\r").unwrap_or(text)
    }
}

/// A trace in which every line is a request, independently of the other lines.
pub(super) struct Records<R, P> {
    lines: Lines<R>,
    parse: P,
}

impl<R: BufRead, P> Records<R, P> {
    pub(super) fn new(input: R, parse: P) -> Records<R, P> {
        Records { lines: Lines::new(input), parse }
    }
}

impl<R: BufRead, P: Fn(&[u8]) -> Result<Record, Fault>> Source for Records<R, P> {
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        self.lines.next_line()?.map(&self.parse).transpose()
    }

    fn position(&self) -> Place {
        self.lines.position()
    }
}

pub(super) fn first_line(head: &[u8]) -> Option<&[u8]> {
    head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    /// Any number of blanks.
    Blanks,
    /// One comma, with or without blanks around it.
    Comma,
}

/// The fields of a line: at least `N`; further ones are ignored.
///
/// *Errors:* fewer, or also more if `exactly`.
pub(super) fn fields<'a, const N: usize>(
    line: &'a [u8],
    separator: Separator,
    exactly: bool,
    form: &'static str,
) -> Result<[&'a [u8]; N], Fault> {
    let mut fields = [&line[..0]; N];
    let mut found = 0;
    let mut take = |field: &'a [u8]| {
        if let Some(place) = fields.get_mut(found) {
            *place = field;
        }
        found += 1;
    };
    match separator {
        Separator::Comma => line.split(|byte| *byte == b',').for_each(|field| take(field.trim_ascii())),
        Separator::Blanks => {
            line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).for_each(take);
        }
    }
    if found < N || (exactly && found > N) {
        return Err(Fault::FieldCount { found, form, wanted: N });
    }
    Ok(fields)
}

pub(super) fn number(
    field: &'static str,
    text: &[u8],
    most: u64,
    allowed: &'static str,
) -> Result<u64, Fault> {
    match digits(text) {
        Some(number) if number <= most => Ok(number),
        _ => Err(Fault::field(field, text, allowed)),
    }
}

pub(super) fn word(field: &'static str, text: &[u8]) -> Result<u32, Fault> {
    let number = number(field, text, u64::from(u32::MAX), "a whole number from 0 to 4294967295")?;
    Ok(number as u32)
}

/// The first byte of a run given in bytes.
pub(super) fn offset(field: &'static str, text: &[u8]) -> Result<u64, Fault> {
    number(field, text, (1 << 63) - 1, "a whole number below 2^63")
}

/// The first byte of a run given by its first sector.
pub(super) fn sector(field: &'static str, text: &[u8]) -> Result<u64, Fault> {
    Ok(number(field, text, SECTORS - 1, "a whole number below 2^54")? * SECTOR)
}

/// Bytes of a run given in sectors.
pub(super) fn sectors(field: &'static str, text: &[u8]) -> Result<u64, Fault> {
    Ok(u64::from(word(field, text)?) * SECTOR)
}

fn digits(text: &[u8]) -> Option<u64> {
    // Nineteen digits cannot overflow; the rare longer number is left to the standard library.
    if text.is_empty() || text.len() > 19 {
        return std::str::from_utf8(text).ok()?.parse().ok();
    }
    let mut number = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    Some(number)
}

/// A point in time in units of `unit` nanoseconds, exact to the nanosecond.
pub(super) fn time(field: &'static str, text: &[u8], unit: u64) -> Result<Instant, Fault> {
    nanoseconds(field, text, unit).map(Instant)
}

/// A span of time in units of `unit` nanoseconds, exact to the nanosecond.
pub(super) fn span(field: &'static str, text: &[u8], unit: u64) -> Result<Nanos, Fault> {
    nanoseconds(field, text, unit).map(Nanos)
}

fn nanoseconds(field: &'static str, text: &[u8], unit: u64) -> Result<u64, Fault> {
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let fraction = text.get(point + 1..).unwrap_or(&[]);
    let exact = (|| {
        let whole = if point == 0 && !fraction.is_empty() { 0 } else { digits(&text[..point])? };
        let parts = if fraction.is_empty() { 0 } else { digits(&fraction[..fraction.len().min(18)])? };
        let scale = 10u128.pow(fraction.len().min(18) as u32);
        let parts = (u128::from(parts) * u128::from(unit) * 2 + scale) / (2 * scale);
        u64::try_from(u128::from(whole) * u128::from(unit) + parts).ok()
    })();
    match exact.or_else(|| rounded(text, unit)) {
        Some(nanos) if nanos <= LATEST => Ok(nanos),
        _ => Err(Fault::field(field, text, A_TIME)),
    }
}

fn rounded(text: &[u8], unit: u64) -> Option<u64> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let nanos = (value * unit as f64).round();
    (0.0..=LATEST as f64).contains(&nanos).then_some(nanos as u64)
}

pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a whole number, padded with blanks on the left to a width.
pub(super) fn push_right(out: &mut Vec<u8>, number: u64, width: usize) {
    let from = out.len();
    push_number(out, number);
    let number = out.len() - from;
    pad(out, from, width);
    let blanks = out.len() - from - number;
    out[from..].rotate_right(blanks);
}

/// Appends blanks until the text from `from` on has a width.
pub(super) fn pad(out: &mut Vec<u8>, from: usize, width: usize) {
    if out.len() < from + width {
        out.resize(from + width, b' ');
    }
}

/// Appends nanoseconds in units of 10^`decimals`, with all decimals.
pub(super) fn push_time(out: &mut Vec<u8>, nanos: u64, decimals: u32) {
    let unit = 10u64.pow(decimals);
    push_number(out, nanos / unit);
    if decimals > 0 {
        let from = out.len();
        // A one in front keeps the zeros; it becomes the point.
        push_number(out, unit + nanos % unit);
        out[from] = b'.';
    }
}

/// Appends a text, a number or a separator after the other.
macro_rules! push {
    ($out:expr; $($part:expr),+) => {{ $( $crate::trace::text::Push::push_to(&$part, $out); )+ }};
}
pub(super) use push;

pub(super) trait Push {
    fn push_to(&self, out: &mut Vec<u8>);
}

impl Push for u64 {
    fn push_to(&self, out: &mut Vec<u8>) {
        push_number(out, *self);
    }
}

impl Push for u32 {
    fn push_to(&self, out: &mut Vec<u8>) {
        push_number(out, u64::from(*self));
    }
}

impl Push for &str {
    fn push_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

impl Push for &[u8] {
    fn push_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl Push for char {
    fn push_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_nanosecond() {
        let ms = |text: &str| time("time", text.as_bytes(), 1_000_000).map(|time| time.0).ok();
        assert_eq!(ms("13.191135"), Some(13_191_135));
        assert_eq!(ms("1532949.045363"), Some(1_532_949_045_363));
        assert_eq!(ms("7"), Some(7_000_000));
        assert_eq!(ms("7."), Some(7_000_000));
        assert_eq!(ms(".5"), Some(500_000));
        assert_eq!(ms("0.0000005"), Some(1));
        assert_eq!(ms("0.00000049"), Some(0));
        assert_eq!(ms("1e3"), Some(1_000_000_000));
        for wrong in ["", ".", "-1", "x", "1.2.3", "nan", "inf", "1e300", "99999999999999999999"] {
            assert_eq!(ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_written_with_all_decimals() {
        let mut out = Vec::new();
        for (time, decimals) in [(13_191_135, 6), (5, 9), (1_000_000, 6), (42, 0)] {
            push_time(&mut out, time, decimals);
            out.push(b' ');
        }
        assert_eq!(out, b"13.191135 0.000000005 1.000000 42 ");
    }

    #[test]
    fn lines_are_split_and_overlong_lines_skipped() {
        let text = format!("\n  a b \r\n{}\nc", "x".repeat(10_000));
        let mut lines = Lines::new(text.as_bytes());
        assert_eq!(lines.next_line().expect("short"), Some(&b"a b"[..]));
        assert_eq!(lines.position(), Place::Line(2));
        assert!(matches!(lines.next_line(), Err(Fault::TooLong)));
        assert_eq!(lines.position(), Place::Line(3));
        assert_eq!(lines.next_line().expect("short"), Some(&b"c"[..]));
        assert_eq!(lines.position(), Place::Line(4));
        assert_eq!(lines.next_line().expect("the end"), None);
    }

    #[test]
    fn wrong_field_count_is_rejected() {
        let two = |line: &'static [u8], exactly| fields::<2>(line, Separator::Comma, exactly, "a,b");
        assert_eq!(two(b"1, 2", true).expect("two"), [b"1", b"2"]);
        assert_eq!(two(b"1,2,3", false).expect("two and one more"), [b"1", b"2"]);
        assert_eq!(two(b"1,2,3", true).expect_err("three").to_string(), "3 fields, where `a,b` are 2");
        assert_eq!(two(b"1", false).expect_err("one").to_string(), "1 fields, where `a,b` are 2");
    }
}
