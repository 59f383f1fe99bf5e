//! The journal's file: one line per answer, each with a checksum, so that truncation and damage are detected.
//!
//! ```text
//! headstack-probe-journal 1
//! disk 17938986 512 1 1 atlas-10k
//! task lattice tracks,seek
//! 0 r 0 1 m 0 5833012 done 9c1f0a77
//! ```
//! After the header, a line has the number of the probe, the command, its start and end in nanoseconds, the outcome, and the
//! CRC-32 of all that. Only the last line may be torn.

use super::Record;
use crate::{Answer, DiskInfo, Outcome, ProbeCommand};
use headstack_model::{Instant, Lbn};
use std::fmt::Write as _;
use std::io::{self, BufRead, Read};
use std::str::FromStr;

/// The disk and the task of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The disk's blocks, bytes per block, blocks per physical sector, and maximum number of probes in flight.
    pub shape: (u64, u32, u32, usize),
    /// The name that the disk reports.
    pub name: String,
    /// The method and its options.
    pub task: String,
}

impl Head {
    /// The header for a disk and a task.
    pub fn new(info: &DiskInfo, name: &str, task: &str) -> Head {
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        Head {
            shape: (info.sectors, info.sector_bytes, info.physical_sectors, info.depth),
            name: one_line(name),
            task: one_line(task),
        }
    }

    fn holds(&self, command: &ProbeCommand) -> bool {
        let (all, ..) = self.shape;
        match command {
            ProbeCommand::Read { lbn, sectors, .. } | ProbeCommand::Write { lbn, sectors, .. } => {
                *sectors > 0 && lbn.0.checked_add(u64::from(*sectors)).is_some_and(|end| end <= all)
            }
            _ => true,
        }
    }

    /// The first lines of a journal.
    pub fn text(&self) -> String {
        let (sectors, bytes, physical, depth) = self.shape;
        let Head { name, task, .. } = self;
        format!("{TITLE}\ndisk {sectors} {bytes} {physical} {depth} {name}\ntask {task}\n")
    }
}

/// Maximum bytes of a line: a list of some millions of defects. It bounds the memory for a file without lines.
const LONGEST: u64 = 64 << 20;

const TITLE: &str = "headstack-probe-journal 1";

/// Latest valid time, a century after a disk's clock began; it leaves room for later times.
const LATEST: Instant = Instant::from_secs(100 * 365 * 86_400);

/// The contents of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// Its disk and task.
    pub head: Head,
    /// The answers.
    pub records: Vec<Record>,
    /// Length in bytes without a torn last line.
    pub whole: u64,
}

/// Why a journal cannot be resumed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum JournalError {
    #[error("{0}")]
    Read(#[from] io::Error),
    #[error("line {line}: `{met}`, where a journal has {allowed}")]
    Head { line: usize, met: String, allowed: &'static str },
    #[error("line {line} is damaged (its checksum does not fit)")]
    Damaged { line: usize },
    #[error("it is of {what} `{met}`, not of `{wanted}`")]
    Other { what: &'static str, met: String, wanted: String },
}

impl Journal {
    /// Reads a journal; omits a torn last line.
    ///
    /// *Errors:* it is no journal, or damaged before its last line.
    pub fn read(mut from: impl BufRead) -> Result<Journal, JournalError> {
        let mut lines = Lines { from: &mut from, number: 0, whole: 0 };
        let head = lines.head()?;
        let (mut records, mut whole) = (Vec::new(), lines.whole);
        let mut torn = None;
        while let Some(text) = lines.next()? {
            if let Some(line) = torn {
                return Err(JournalError::Damaged { line });
            }
            let reported = text.strip_suffix('\n').and_then(record);
            match reported.filter(|record| head.holds(&record.command)) {
                Some(record) => {
                    records.push(record);
                    whole = lines.whole;
                }
                None => torn = Some(lines.number),
            }
        }
        Ok(Journal { head, records, whole })
    }

    /// Checks that it can be resumed for this disk and task.
    ///
    /// *Errors:* another disk or another task.
    pub fn fits(&self, wanted: &Head) -> Result<(), JournalError> {
        let disk = |head: &Head| {
            let (sectors, bytes, physical, depth) = head.shape;
            format!(
                "{} ({sectors} blocks of {bytes} bytes, {physical} together, {depth} at a time)",
                head.name
            )
        };
        let (met, want) = (&self.head, wanted);
        for (what, met, wanted) in
            [("disk", disk(met), disk(want)), ("task", met.task.clone(), want.task.clone())]
        {
            if met != wanted {
                return Err(JournalError::Other { what, met, wanted });
            }
        }
        Ok(())
    }
}

struct Lines<'a, R> {
    from: &'a mut R,
    number: usize,
    /// Bytes up to the end of the last line.
    whole: u64,
}

impl<R: BufRead> Lines<'_, R> {
    /// The next line with its end; none if it is not UTF-8.
    fn next(&mut self) -> io::Result<Option<String>> {
        let mut bytes = Vec::new();
        let count = (&mut *self.from).take(LONGEST).read_until(b'\n', &mut bytes)?;
        self.number += 1;
        self.whole += count as u64;
        Ok((count > 0).then(|| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn head(&mut self) -> Result<Head, JournalError> {
        let mut line = |allowed: &'static str, start: &str| {
            let text = self.next()?.unwrap_or_default();
            let number = self.number;
            let wrong = |text: &str| JournalError::Head {
                line: number,
                met: text.chars().take(60).collect(),
                allowed,
            };
            let text = text.strip_suffix('\n').ok_or_else(|| wrong(text.trim_end()))?;
            text.strip_prefix(start).map(str::to_string).ok_or_else(|| wrong(text))
        };
        let rest = line("the line `headstack-probe-journal 1`", TITLE)?;
        if !rest.is_empty() {
            return Err(JournalError::Head { line: 1, met: format!("{TITLE}{rest}"), allowed: "version 1" });
        }
        let disk = line("`disk` and what it is of", "disk ")?;
        let task = line("`task` and what is learned", "task ")?;
        let wrong = || JournalError::Head { line: 2, met: disk.clone(), allowed: "four numbers of the disk" };
        let mut fields = disk.splitn(5, ' ');
        let shape = (|| {
            Some((
                number(fields.next())?,
                number(fields.next())?,
                number(fields.next())?,
                number(fields.next())?,
            ))
        })();
        let name = fields.next().unwrap_or_default().to_string();
        Ok(Head { shape: shape.ok_or_else(wrong)?, name, task })
    }
}

/// The command as words of a line.
pub(super) fn words(command: &ProbeCommand) -> String {
    let media = |is: &bool| if *is { "m" } else { "c" };
    match command {
        ProbeCommand::Read { lbn, sectors, from_media } => {
            format!("r {} {sectors} {}", lbn.0, media(from_media))
        }
        ProbeCommand::Write { lbn, sectors, to_media } => {
            format!("w {} {sectors} {}", lbn.0, media(to_media))
        }
        ProbeCommand::Flush => "f".to_string(),
        ProbeCommand::Locate(lbn) => format!("l {}", lbn.0),
        ProbeCommand::BlockAt(cylinder, head, sector) => format!("b {cylinder} {head} {sector}"),
        ProbeCommand::Defects => "d".to_string(),
    }
}

pub(super) fn line(record: &Record) -> String {
    let Answer { issued, ended, outcome } = &record.answer;
    let mut line = format!("{} {} {} {} ", record.number, words(&record.command), issued.0, ended.0);
    match outcome {
        Outcome::Done => line += "done",
        Outcome::Failed => line += "failed",
        Outcome::Refused => line += "refused",
        Outcome::Place { cylinder, head, sector } => put(&mut line, "place", [*cylinder, *head, *sector]),
        Outcome::Block(None) => line += "no-block",
        Outcome::Block(Some(lbn)) => {
            let _ = write!(line, "block:{}", lbn.0);
        }
        Outcome::Defects(all) => {
            line += "defects";
            all.iter().for_each(|(cylinder, head, sector)| put(&mut line, "", [*cylinder, *head, *sector]));
        }
    }
    let check = crc32fast::hash(line.as_bytes());
    let _ = writeln!(line, " {check:08x}");
    line
}

fn put(line: &mut String, name: &str, numbers: [u32; 3]) {
    let [a, b, c] = numbers;
    // Writing to a string does not fail.
    let _ = write!(line, "{name}:{a}:{b}:{c}");
}

/// Parses a line without its end; none if it is damaged.
pub(super) fn record(line: &str) -> Option<Record> {
    let (reported, check) = line.rsplit_once(' ')?;
    if u32::from_str_radix(check, 16).ok()? != crc32fast::hash(reported.as_bytes()) || check.len() != 8 {
        return None;
    }
    let mut fields = reported.split(' ');
    let number = number(fields.next())?;
    let command = command(&mut fields)?;
    let mut time = || self::number(fields.next()).map(Instant);
    let (issued, ended) = (time()?, time()?);
    if issued > ended || ended > LATEST {
        return None;
    }
    let outcome = outcome(fields.next()?)?;
    Some(Record { number, command, answer: Answer { issued, ended, outcome } })
}

fn number<N: FromStr>(field: Option<&str>) -> Option<N> {
    field?.parse().ok()
}

fn command<'a>(fields: &mut impl Iterator<Item = &'a str>) -> Option<ProbeCommand> {
    let kind = fields.next()?;
    let mut run = || {
        let (lbn, sectors) = (Lbn(number(fields.next())?), number(fields.next())?);
        Some((lbn, sectors, fields.next()? == "m"))
    };
    Some(match kind {
        "r" => run().map(|(lbn, sectors, from_media)| ProbeCommand::Read { lbn, sectors, from_media })?,
        "w" => run().map(|(lbn, sectors, to_media)| ProbeCommand::Write { lbn, sectors, to_media })?,
        "f" => ProbeCommand::Flush,
        "l" => ProbeCommand::Locate(Lbn(number(fields.next())?)),
        "b" => ProbeCommand::BlockAt(number(fields.next())?, number(fields.next())?, number(fields.next())?),
        "d" => ProbeCommand::Defects,
        _ => return None,
    })
}

fn outcome(text: &str) -> Option<Outcome> {
    let mut fields = text.split(':');
    let name = fields.next()?;
    let numbers = || fields.map(|field| field.parse().ok()).collect::<Option<Vec<u64>>>();
    let small = |number: u64| u32::try_from(number).ok();
    Some(match (name, numbers()?.as_slice()) {
        ("done", []) => Outcome::Done,
        ("failed", []) => Outcome::Failed,
        ("refused", []) => Outcome::Refused,
        ("place", &[cylinder, head, sector]) => {
            Outcome::Place { cylinder: small(cylinder)?, head: small(head)?, sector: small(sector)? }
        }
        ("no-block", []) => Outcome::Block(None),
        ("block", &[lbn]) => Outcome::Block(Some(Lbn(lbn))),
        ("defects", all) if all.len().is_multiple_of(3) => {
            let each = all.chunks_exact(3).map(|at| Some((small(at[0])?, small(at[1])?, small(at[2])?)));
            Outcome::Defects(each.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> DiskInfo {
        DiskInfo {
            sectors: 100,
            sector_bytes: 512,
            physical_sectors: 8,
            depth: 2,
            may_write: false,
            translates: true,
        }
    }

    fn records() -> Vec<Record> {
        let requested = [
            (ProbeCommand::Read { lbn: Lbn(93), sectors: 7, from_media: true }, Outcome::Done),
            (ProbeCommand::Write { lbn: Lbn(0), sectors: 1, to_media: false }, Outcome::Failed),
            (ProbeCommand::Flush, Outcome::Refused),
            (ProbeCommand::Locate(Lbn(9)), Outcome::Place { cylinder: 1, head: 2, sector: u32::MAX }),
            (ProbeCommand::BlockAt(1, 2, 3), Outcome::Block(Some(Lbn(u64::MAX)))),
            (ProbeCommand::BlockAt(1, 2, 4), Outcome::Block(None)),
            (ProbeCommand::Defects, Outcome::Defects(Vec::new())),
            (ProbeCommand::Defects, Outcome::Defects(vec![(1, 2, 3), (4, 5, 6)])),
        ];
        let each = requested.into_iter().zip(0..);
        each.map(|((command, outcome), number)| Record {
            number,
            command,
            answer: Answer { issued: Instant(number * 10), ended: Instant(number * 10 + 5), outcome },
        })
        .collect()
    }

    fn text() -> String {
        let head = Head::new(&info(), "a disk of\nmine", "lattice tracks,seek");
        records().iter().fold(head.text(), |text, record| text + &line(record))
    }

    #[test]
    fn written_journal_reads_back_unchanged() {
        let (text, head) = (text(), Head::new(&info(), "a disk of mine", "lattice tracks,seek"));
        let journal = Journal::read(text.as_bytes()).expect("it is whole");
        assert_eq!(journal, Journal { head: head.clone(), records: records(), whole: text.len() as u64 });
        journal.fits(&head).expect("it is of this");
    }

    #[test]
    fn truncated_last_line_is_ignored_at_every_cut() {
        let text = text();
        let last = text[..text.len() - 1].rfind('\n').expect("there are several") + 1;
        for cut in last..text.len() {
            let journal = Journal::read(&text.as_bytes()[..cut]).expect("only its end is missing");
            assert_eq!((journal.records.len(), journal.whole), (records().len() - 1, last as u64), "{cut}");
        }
    }

    #[test]
    fn damage_is_reported_with_its_line() {
        let text = text();
        let damaged = text.replacen("w 0 1 c", "w 0 2 c", 1);
        let error = Journal::read(damaged.as_bytes()).expect_err("it is damaged").to_string();
        assert_eq!(error, "line 5 is damaged (its checksum does not fit)");
        let reported = |text: &str| Journal::read(text.as_bytes()).expect_err("it is no journal").to_string();
        assert_eq!(reported(""), "line 1: ``, where a journal has the line `headstack-probe-journal 1`");
        assert_eq!(
            reported("headstack-probe-journal 12\n"),
            "line 1: `headstack-probe-journal 12`, where a journal has version 1"
        );
        assert!(
            reported(&text.replacen("disk 100 512", "disk 100 x", 1))
                .starts_with("line 2: `100 x 8 2 a disk")
        );
        assert!(reported("headstack-probe-journal 1\ndisk 1 2 3 4 a\n").starts_with("line 3: ``"));
        // No damage causes a panic.
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 0x55;
            let _ = Journal::read(bytes.as_slice());
        }
    }

    #[test]
    fn record_outside_disk_is_rejected() {
        let read = |lbn, sectors| {
            let command = ProbeCommand::Read { lbn: Lbn(lbn), sectors, from_media: true };
            let answer = Answer { issued: Instant(0), ended: Instant(1), outcome: Outcome::Done };
            let head = Head::new(&info(), "disk", "lattice tracks");
            // The last line may be torn.
            let text = head.text() + &line(&Record { number: 0, command, answer }) + &line(&records()[2]);
            Journal::read(text.as_bytes())
                .map(|journal| journal.records.len())
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(99, 1), Ok(2));
        for (lbn, sectors) in [(100, 1), (99, 2), (0, 0), (u64::MAX, 1), (1 << 56, 8)] {
            let error = read(lbn, sectors).expect_err("it is not on the disk");
            assert!(error.starts_with("line 4 is damaged"), "{lbn} {sectors}: {error}");
        }
    }

    #[test]
    fn endless_line_is_rejected_without_reading_whole_file() {
        let mut left = u64::MAX;
        let zeroes = io::repeat(0).take(left);
        let mut zeroes = io::BufReader::new(zeroes);
        let error = Journal::read(&mut zeroes).expect_err("it is no journal").to_string();
        left -= zeroes.get_ref().limit();
        assert!(error.starts_with("line 1: ") && left <= 2 * LONGEST, "{error}, after {left} bytes");
    }

    #[test]
    fn impossible_answer_times_are_rejected() {
        let read = |issued, ended| {
            let answer = Answer { issued, ended, outcome: Outcome::Done };
            record(line(&Record { number: 0, command: ProbeCommand::Flush, answer }).trim_end())
        };
        assert!(read(LATEST, LATEST).is_some());
        assert_eq!(read(Instant(6), Instant(5)), None, "it ended before it began");
        assert_eq!(read(Instant(5), Instant(LATEST.0 + 1)), None, "it is too late");
        assert_eq!(read(Instant(5), Instant::MAX), None);
    }

    #[test]
    fn journal_of_another_disk_or_task_is_rejected() {
        let journal = Journal::read(text().as_bytes()).expect("it is whole");
        let name = "a disk of mine";
        let other = DiskInfo { sectors: 101, ..info() };
        let error = journal.fits(&Head::new(&other, name, "lattice tracks,seek")).expect_err("it is larger");
        assert!(error.to_string().starts_with("it is of disk `a disk of mine (100 blocks"), "{error}");
        let error = journal.fits(&Head::new(&info(), name, "timing tracks")).expect_err("another task");
        assert_eq!(error.to_string(), "it is of task `lattice tracks,seek`, not of `timing tracks`");
    }
}
