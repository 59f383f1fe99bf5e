//! Validation traces: requests that a real drive once served, with the time that it took over each.
//!
//! One request a line, six fields apart by blanks: `R` or `W`, the action seen on the bus (ignored), first block,
//! sectors, measured time in microseconds, think time in microseconds. The think time runs from this request's
//! completion to the next one's issue. Empty lines are skipped.
//!
//! *Source:* the validation data of DiskSim 4.0 (Bucy, Schindler, Schlosser and Ganger 2008).

use std::io::{BufRead, Read};

use headstack_model::{Lbn, Nanos, Op, Request};
use thiserror::Error;

use crate::{Issue, Load, Poll};

/// The longest line that is read.
const LONGEST_LINE: usize = 4096;
/// The longest time that is believed: a hundred days, so that no sum of a trace's times can overflow.
const LONGEST_US: f64 = 100.0 * 86_400.0 * 1e6;

/// A request of a validation trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What was asked.
    pub request: Request,
    /// How long the real drive took.
    pub measured: Nanos,
    /// From this request's completion to the next one's issue.
    pub think: Nanos,
}

/// What is wrong with a trace, and where.
#[derive(Debug, Error)]
#[error("line {line}: {fault}")]
pub struct TraceError {
    /// The line, counted from 1.
    pub line: u64,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What can be wrong with a line.
#[derive(Debug, Error)]
pub enum Fault {
    /// The reader failed.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// It is longer than any real one.
    #[error("longer than {LONGEST_LINE} bytes")]
    TooLong,
    /// It is not text.
    #[error("not UTF-8 text")]
    NotText,
    /// A field is missing or one too many.
    #[error("{found} fields, where `R|W action lbn sectors measured_us think_us` are six")]
    FieldCount {
        /// How many there are.
        found: usize,
    },
    /// A field holds what it may not.
    #[error("{field} is `{found}`, where {allowed} is allowed")]
    Field {
        /// The field's name.
        field: &'static str,
        /// What it holds, cut to 40 characters.
        found: String,
        /// What it may hold.
        allowed: &'static str,
    },
}

impl Fault {
    fn field(field: &'static str, found: &str, allowed: &'static str) -> Fault {
        Fault::Field { field, found: found.chars().take(40).collect(), allowed }
    }
}

/// Reads a validation trace, one record at a time. After an error it yields nothing more.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    text: Vec<u8>,
    line: u64,
    done: bool,
}

impl<R: BufRead> Reader<R> {
    /// A reader of `input` from its first line on.
    pub fn new(input: R) -> Reader<R> {
        Reader { input, text: Vec::with_capacity(128), line: 0, done: false }
    }

    /// The next line with anything on it; none at the end.
    fn next_record(&mut self) -> Result<Option<Record>, Fault> {
        loop {
            self.line += 1;
            self.text.clear();
            let mut bounded = self.input.by_ref().take(LONGEST_LINE as u64 + 1);
            if bounded.read_until(b'\n', &mut self.text)? == 0 {
                return Ok(None);
            }
            if self.text.len() > LONGEST_LINE {
                return Err(Fault::TooLong);
            }
            let text = std::str::from_utf8(&self.text).map_err(|_| Fault::NotText)?;
            if !text.trim().is_empty() {
                return parse(text).map(Some);
            }
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let line = self.next_record().map_err(|fault| TraceError { line: self.line, fault });
        self.done = !matches!(line, Ok(Some(_)));
        line.transpose()
    }
}

/// One line as a record.
fn parse(text: &str) -> Result<Record, Fault> {
    let mut fields = [""; 6];
    let mut found = 0;
    for field in text.split_whitespace() {
        if let Some(place) = fields.get_mut(found) {
            *place = field;
        }
        found += 1;
    }
    if found != fields.len() {
        return Err(Fault::FieldCount { found });
    }
    let [op, _action, lbn, sectors, measured, think] = fields;
    Ok(Record {
        request: Request { op: parse_op(op)?, fua: false, ..parse_run(lbn, sectors)? },
        measured: parse_us("measured_us", measured)?,
        think: parse_us("think_us", think)?,
    })
}

fn parse_op(text: &str) -> Result<Op, Fault> {
    match text {
        "R" => Ok(Op::Read),
        "W" => Ok(Op::Write),
        other => Err(Fault::field("the operation", other, "`R` or `W`")),
    }
}

/// The run of blocks, as a read.
fn parse_run(lbn: &str, sectors: &str) -> Result<Request, Fault> {
    // Above 2⁶³ no disk reaches, and the end of the run cannot overflow below it.
    let first = lbn.parse().ok().filter(|first| *first < 1u64 << 63);
    let count = sectors.parse().ok().filter(|count| *count > 0);
    match (first, count) {
        (None, _) => Err(Fault::field("lbn", lbn, "a whole number below 2^63")),
        (_, None) => Err(Fault::field("sectors", sectors, "a whole number from 1 to 4294967295")),
        (Some(first), Some(count)) => Ok(Request::read(Lbn(first), count)),
    }
}

fn parse_us(field: &'static str, text: &str) -> Result<Nanos, Fault> {
    match text.parse::<f64>() {
        Ok(us) if (0.0..=LONGEST_US).contains(&us) => Ok(Nanos::from_us(us)),
        _ => Err(Fault::field(field, text, "a time from 0 to a hundred days")),
    }
}

/// Closed replay at queue depth 1: the first request at time 0, each next one its think time after the completion.
///
/// Requests go to device 0; their ids count from 0.
#[derive(Clone, Debug)]
pub struct Replay<I> {
    records: I,
    issued: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The next request is issued at this time.
    Thinking(Nanos),
    /// A request is out, whose think time this is.
    Busy(Nanos),
    Done,
}

impl<I: Iterator<Item = Record>> Replay<I> {
    /// A replay of `records` in their order.
    pub fn new(records: I) -> Replay<I> {
        Replay { records, issued: 0, state: State::Thinking(Nanos::ZERO) }
    }
}

impl<I: Iterator<Item = Record>> Load for Replay<I> {
    fn poll(&mut self, now: Nanos) -> Poll {
        match self.state {
            State::Thinking(until) if now < until => return Poll::Later(until),
            State::Thinking(_) => {}
            State::Busy(_) => return Poll::Waiting,
            State::Done => return Poll::Done,
        }
        let Some(record) = self.records.next() else {
            self.state = State::Done;
            return Poll::Done;
        };
        let id = self.issued;
        self.issued += 1;
        self.state = State::Busy(record.think);
        Poll::Issue(Issue::new(0, record.request, id))
    }

    fn handle_completion(&mut self, now: Nanos, id: u64) {
        assert_eq!(id + 1, self.issued, "only the last request issued is out");
        if let State::Busy(think) = self.state {
            self.state = State::Thinking(Nanos(now.0.saturating_add(think.0)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "W Hit    4583176   4    663.00000  45422.00000\n\nR Miss 7 2 1414.270 18.5\r\nR Trip 9 1 0 0";

    fn read(text: &[u8]) -> Result<Vec<Record>, TraceError> {
        Reader::new(text).collect()
    }

    fn fault(text: &str) -> String {
        read(text.as_bytes()).expect_err("the text is faulty").to_string()
    }

    #[test]
    fn are_the_six_fields_read() {
        let records = read(TEXT.as_bytes()).expect("the text is good");
        assert_eq!(records.len(), 3);
        let first = Record {
            request: Request::write(Lbn(4_583_176), 4),
            measured: Nanos(663_000),
            think: Nanos(45_422_000),
        };
        assert_eq!(records[0], first);
        assert_eq!(records[1].request, Request::read(Lbn(7), 2));
        assert_eq!((records[1].measured, records[1].think), (Nanos(1_414_270), Nanos(18_500)));
    }

    #[test]
    fn do_faults_name_the_line_and_the_field() {
        let good = "R Hit 1 1 1 1\n";
        let said = |line: &str| fault(&format!("{good}\n{line}\n{good}"));
        assert_eq!(
            said("R Hit 1 1 1"),
            "line 3: 5 fields, where `R|W action lbn sectors measured_us think_us` are six"
        );
        assert_eq!(said("r Hit 1 1 1 1"), "line 3: the operation is `r`, where `R` or `W` is allowed");
        assert!(said("R Hit -1 1 1 1").starts_with("line 3: lbn is `-1`"));
        assert!(said("R Hit 9223372036854775808 1 1 1").starts_with("line 3: lbn is"));
        assert!(said("R Hit 1 0 1 1").starts_with("line 3: sectors is `0`"));
        assert!(said("R Hit 1 4294967296 1 1").starts_with("line 3: sectors is"));
        for wrong in ["-1", "nan", "inf", "1e300", "x"] {
            assert!(said(&format!("R Hit 1 1 {wrong} 1")).starts_with("line 3: measured_us is"));
            assert!(said(&format!("R Hit 1 1 1 {wrong}")).starts_with("line 3: think_us is"));
        }
        assert_eq!(fault(&"R".repeat(5000)), "line 1: longer than 4096 bytes");
        let bytes = read(b"R Hit 1 1 1 1\nR \xff 1 1 1 1\n").expect_err("not text");
        assert_eq!(bytes.to_string(), "line 2: not UTF-8 text");
    }

    #[test]
    fn does_reading_end_at_the_first_error() {
        let mut reader = Reader::new(&b"bad\nR Hit 1 1 1 1\n"[..]);
        assert!(matches!(reader.next(), Some(Err(_))));
        assert!(reader.next().is_none());
    }

    #[test]
    fn is_the_next_request_issued_at_completion_plus_think_time() {
        let records = read(TEXT.as_bytes()).expect("the text is good");
        let mut replay = Replay::new(records.iter().copied());
        let issue = |at: usize| Poll::Issue(Issue::new(0, records[at].request, at as u64));
        assert_eq!(replay.poll(Nanos(0)), issue(0));
        assert_eq!(replay.poll(Nanos(0)), Poll::Waiting);
        replay.handle_completion(Nanos(1_000), 0);
        assert_eq!(replay.poll(Nanos(1_000)), Poll::Later(Nanos(45_423_000)));
        assert_eq!(replay.poll(Nanos(45_422_999)), Poll::Later(Nanos(45_423_000)));
        assert_eq!(replay.poll(Nanos(45_423_000)), issue(1));
        replay.handle_completion(Nanos(50_000_000), 1);
        assert_eq!(replay.poll(Nanos(50_018_500)), issue(2));
        replay.handle_completion(Nanos(50_020_000), 2);
        assert_eq!(replay.poll(Nanos(50_020_000)), Poll::Done);
        assert_eq!(replay.poll(Nanos(60_000_000)), Poll::Done);
    }
}
