//! A journal of answers: an interrupted extraction resumes where it stopped.
//!
//! The same answers lead to the same probes. So a [`Journaled`] disk records each answer, and replays recorded answers before it
//! sends a probe of its own. After an interruption the disk's clock is another one. Some recorded blocks are read again first:
//! their angles give the offset of the new clock, so that later readings agree with the recorded ones. They also expose the
//! journal of another disk, even if no probe is left to send.
//!
//! Not restored: the position of the arm, and the content of the disk's cache. One or two reads take another time for it, once.

mod lines;
mod rejoin;

pub use lines::{Head, Journal, JournalError};
pub use rejoin::RejoinError;

use crate::drive::{self, ProbeTarget};
use crate::{Answer, Disk, DiskInfo, Extraction, Probe, ProbeCommand};
use headstack_model::{Instant, Nanos};
use rejoin::{Fingerprint, rejoin};
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;

/// A recorded answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Record {
    pub number: u64,
    pub command: ProbeCommand,
    pub answer: Answer,
}

/// Why a journaled disk fails.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum JournalFailure<E> {
    #[error("{0}")]
    Disk(E),
    #[error(
        "the journal is of another extraction: its answer {number} is to `{met}`, which this extraction does not send; repeat the options of the first run"
    )]
    Other { number: u64, met: String },
    #[error("{0}")]
    Rejoin(RejoinError),
    #[error("the journal cannot be written: {0}")]
    Write(std::io::Error),
}

/// A disk that records answers, and first replays recorded ones.
#[derive(Debug)]
pub struct Journaled<D, W> {
    disk: D,
    to: W,
    known: VecDeque<Record>,
    /// Probes that wait for a recorded answer, or for the end of the replay.
    held: BTreeMap<u64, Probe>,
    /// Answers that identify the disk; none once it is identified.
    fingerprint: Option<Fingerprint>,
    /// Time of the latest answer.
    end: Instant,
    /// Offset of the journal's clock from the disk's clock.
    ahead: Nanos,
}

/// Whether recorded answers suffice to identify a disk; if not, they are useless.
pub fn is_enough(known: &[Record]) -> bool {
    Fingerprint::from_records(known).is_some()
}

fn ended(known: &[Record]) -> Instant {
    known.iter().map(|record| record.answer.ended).max().unwrap_or_default()
}

impl<D: ProbeTarget, W: Write> Journaled<D, W> {
    /// A disk, its recorded answers, and the output for new ones. Ignores recorded answers that do not identify a disk ([`is_enough`]).
    pub fn new(disk: D, known: Vec<Record>, to: W) -> Journaled<D, W> {
        let fingerprint = Fingerprint::from_records(&known);
        let known = if fingerprint.is_some() { known } else { Vec::new() };
        let end = ended(&known);
        Journaled {
            disk,
            to,
            known: known.into(),
            held: BTreeMap::new(),
            fingerprint,
            end,
            ahead: Nanos::ZERO,
        }
    }

    /// The disk.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// Sends the held probes to the disk, once no recorded answer is left.
    fn release_held(&mut self) -> Result<(), JournalFailure<D::Error>> {
        while let Some((_, probe)) = self.held.pop_first() {
            self.pass(probe)?;
        }
        Ok(())
    }

    /// Checks that it is the disk of the journal, and sets the clock offset.
    fn reidentify(&mut self, fingerprint: Fingerprint) -> Result<(), JournalFailure<D::Error>> {
        let end = self.end;
        let mut rejoining =
            Extraction::new(self.disk.info(), async move |disk: Disk| rejoin(&disk, &fingerprint, end).await);
        let found =
            drive::run(&mut rejoining, &mut self.disk, |_, _, _| true).map_err(JournalFailure::Disk)?;
        self.ahead = found.expect("it is not cancelled").map_err(JournalFailure::Rejoin)?;
        Ok(())
    }

    fn pass(&mut self, probe: Probe) -> Result<(), JournalFailure<D::Error>> {
        let at = probe.at.saturating_sub(self.ahead);
        self.disk.submit(Probe { at, ..probe }).map_err(JournalFailure::Disk)
    }

    fn recall(&mut self, record: Record) -> Result<(Probe, Answer), JournalFailure<D::Error>> {
        match self.held.remove(&record.number) {
            Some(probe) if probe.command == record.command => Ok((probe, record.answer)),
            _ => Err(JournalFailure::Other { number: record.number, met: lines::words(&record.command) }),
        }
    }
}

impl<D: ProbeTarget, W: Write> ProbeTarget for Journaled<D, W> {
    type Error = JournalFailure<D::Error>;

    fn info(&self) -> DiskInfo {
        self.disk.info()
    }

    fn submit(&mut self, probe: Probe) -> Result<(), Self::Error> {
        if let Some(fingerprint) = self.fingerprint.take() {
            self.reidentify(fingerprint)?;
        }
        self.held.insert(probe.number, probe);
        if self.known.is_empty() { self.release_held() } else { Ok(()) }
    }

    fn wait(&mut self) -> Result<(Probe, Answer), Self::Error> {
        if let Some(record) = self.known.pop_front() {
            return self.recall(record);
        }
        self.release_held()?;
        let (probe, answer) = self.disk.wait().map_err(JournalFailure::Disk)?;
        let later = |at: Instant| at + self.ahead;
        let answer = Answer { issued: later(answer.issued), ended: later(answer.ended), ..answer };
        let record = Record { number: probe.number, command: probe.command, answer: answer.clone() };
        self.to.write_all(lines::line(&record).as_bytes()).map_err(JournalFailure::Write)?;
        Ok((probe, answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Noise, SimulatedDisk};
    use headstack_model::{Lbn, drives};

    const COUNT: usize = 400;

    fn disk(name: &str, seed: u64) -> SimulatedDisk {
        SimulatedDisk::new(&drives::load(name).expect("it is shipped"), Noise::USUAL, seed).expect("it holds")
    }

    /// Indices of the places read, and the angles at the ends, in nanoseconds.
    type Angles = Vec<(usize, u64)>;

    /// Reads a hundred places several times, several at once.
    async fn angles(disk: Disk) -> Angles {
        let turn = 60e9 / 7199.6;
        let mut found = Vec::new();
        for round in 0..COUNT / 4 {
            let place = |k: usize| (round * 4 + k) % 100;
            let command = |k| ProbeCommand::Read {
                lbn: Lbn(place(k) as u64 * 90_000_000),
                sectors: 8,
                from_media: true,
            };
            let sent: Vec<_> = (0..4).map(|k| (place(k), disk.send(command(k), Instant::ZERO))).collect();
            for (place, ticket) in sent {
                let ended = disk.answer(ticket).await.ended.0 as f64;
                found.push((place, ((ended / turn).fract() * turn) as u64));
            }
        }
        found
    }

    /// Runs up to a number of answers; returns the result and the journal's lines.
    fn run(disk: SimulatedDisk, known: Vec<Record>, most: usize) -> Result<(Option<Angles>, String), String> {
        let mut journaled = Journaled::new(disk, known, Vec::new());
        let mut extraction = Extraction::new(journaled.info(), angles);
        let mut answers = 0;
        let found = drive::run(&mut extraction, &mut journaled, |_, _, _| {
            answers += 1;
            answers <= most
        });
        let found = found.map_err(|error| error.to_string())?;
        Ok((found, String::from_utf8(journaled.to).expect("it is text")))
    }

    fn records(lines: &str) -> Vec<Record> {
        lines.lines().map(|line| lines::record(line).expect("it was written so")).collect()
    }

    #[test]
    fn resumed_extraction_recovers_platter_angle() {
        // Both platters were at the same angle when their clocks began. If learning took less time than identifying the disk, the
        // clock needs no offset and agrees by itself; the later two cuts need one.
        for cut in [250, 360, 380] {
            let middle = off_after(cut);
            assert!(middle.abs() < 20_000.0, "the platter is {middle} ns off after {cut} answers");
        }
    }

    /// Nanoseconds by which blocks pass the head later after an interruption behind `cut` answers.
    fn off_after(cut: usize) -> f64 {
        let (none, lines) = run(disk("toshiba-x300", 1), Vec::new(), cut).expect("it runs");
        assert!(none.is_none(), "it was interrupted");
        let known = records(&lines);
        assert!((cut..=cut + 1).contains(&known.len()), "{}", known.len());
        // The disk was switched on meanwhile: a new one with other noise, whose clock begins at zero.
        let mut later = disk("toshiba-x300", 2);
        let turned = async |disk: Disk| disk.read(Lbn(123_456), 8).await;
        let mut turned = Extraction::new(later.info(), turned);
        drive::run(&mut turned, &mut later, |_, _, _| true).expect("it cannot fail");
        let (found, more) = run(later, known, usize::MAX).expect("it continues");
        let found = found.expect("it comes to its end");
        assert_eq!(found.len(), COUNT);
        assert_eq!(records(&more).len() + records(&lines).len(), COUNT);
        let turn = 60e9 / 7199.6;
        let mut off: Vec<f64> = Vec::new();
        for (place, angle) in &found[cut..] {
            let before = found.iter().find(|(other, _)| other == place).expect("all were read before").1;
            let apart = (*angle as f64 - before as f64) / turn;
            off.push((apart - apart.round()) * turn);
        }
        crate::spin::middle(&mut off).expect("there are some")
    }

    #[test]
    fn finished_journal_is_rejected_for_another_disk() {
        let (found, lines) = run(disk("toshiba-x300", 1), Vec::new(), usize::MAX).expect("it runs");
        assert!(found.is_some(), "it came to its end");
        let (again, more) =
            run(disk("toshiba-x300", 2), records(&lines), usize::MAX).expect("it is the disk");
        assert_eq!((again, more.as_str()), (found, ""), "nothing is asked again but what it is known by");
        let other = run(disk("exos-x16", 1), records(&lines), usize::MAX).expect_err("it is another disk");
        assert!(other.contains("another disk"), "{other}");
    }

    #[test]
    fn journal_with_too_few_answers_is_ignored() {
        let (_, lines) = run(disk("toshiba-x300", 1), Vec::new(), 5).expect("it runs");
        let known = records(&lines);
        assert!(!is_enough(&known) && !is_enough(&[]));
        // Another disk executes all probes again.
        let (found, lines) =
            run(disk("exos-x16", 1), known, usize::MAX).expect("nothing of the journal is taken");
        assert_eq!((found.map(|found| found.len()), records(&lines).len()), (Some(COUNT), COUNT));
        assert!(is_enough(&records(&lines)));
    }

    #[test]
    fn recorded_locations_identify_their_disk() {
        let walk = |name: &str, known: Vec<Record>| {
            let mut journaled = Journaled::new(disk(name, 1), known, Vec::new());
            let places = async |disk: Disk| {
                for place in 0..200 {
                    disk.execute(ProbeCommand::Locate(Lbn(place * 89_003))).await;
                }
            };
            let mut extraction = Extraction::new(journaled.info(), places);
            let done = drive::run(&mut extraction, &mut journaled, |_, _, _| true);
            done.map_err(|error| error.to_string())?;
            Ok::<_, String>(String::from_utf8(journaled.to).expect("it is text"))
        };
        let known = records(&walk("atlas-10k", Vec::new()).expect("it runs"));
        assert_eq!(walk("atlas-10k", known.clone()).as_deref(), Ok(""));
        let other = walk("atlas-10k-ii", known).expect_err("it is another disk");
        assert!(other.starts_with("the journal is of another disk: "), "{other}");
    }

    #[test]
    fn journal_of_another_extraction_or_disk_is_rejected() {
        let (_, lines) = run(disk("toshiba-x300", 1), Vec::new(), 150).expect("it runs");
        let mut known = records(&lines);
        let other = run(disk("exos-x16", 1), known.clone(), usize::MAX).expect_err("it is another disk");
        assert!(other.contains("another disk"), "{other}");
        known[9].command = ProbeCommand::Flush;
        let other = run(disk("toshiba-x300", 1), known, usize::MAX).expect_err("it asked something else");
        assert!(other.starts_with("the journal is of another extraction: its answer"), "{other}");
    }
}
