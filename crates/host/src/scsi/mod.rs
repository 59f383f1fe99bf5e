//! Real SCSI disks that report where their blocks are: SCSI commands through Linux's `SG_IO`.
//!
//! [`Translator`] answers an extraction's queries of places (`Locate`, `BlockAt`, `Defects`); [`Translating`] combines it with a
//! disk that answers all other commands. [`commands`] encodes and decodes bytes without the system; [`sg`] passes them to a
//! device. Only reading commands and the request of a translation are sent: nothing on the disk changes.
//!
//! *Source:* T10 SPC-4 (SEND DIAGNOSTIC, RECEIVE DIAGNOSTIC RESULTS, sense data) and SBC-3 (READ CAPACITY, READ DEFECT DATA,
//! Translate Address diagnostic pages, address formats); Linux `include/scsi/sg.h`.

pub mod commands;
pub mod sg;

use crate::Clock;
use commands::{Address, Capacity, Command, DefectFormat, Sense};
use headstack_model::Lbn;
use headstack_probe::drive::ProbeTarget;
use headstack_probe::{Answer, DiskInfo, Outcome, Probe, ProbeCommand};
use std::collections::VecDeque;
use std::io;

/// Maximum bytes of the answer to a translation.
const TRANSLATION_BYTES: u16 = 256;
/// Maximum bytes of a defect list.
const MOST_DEFECT_BYTES: u32 = 1 << 24;

/// What carries SCSI commands to a disk.
pub trait Transport {
    /// Carries out a command, with data to the disk or space for its answer; returns the number of bytes received.
    ///
    /// *Errors:* the command could not be carried out, or the disk refused it.
    fn run(&mut self, command: &Command, data: Data<'_>) -> Result<usize, CommandError>;
}

/// The data of a command.
#[derive(Debug)]
pub enum Data<'a> {
    /// Bytes to the disk.
    Out(&'a [u8]),
    /// Space for bytes from the disk.
    In(&'a mut [u8]),
}

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum CommandError {
    /// The system could not send it.
    #[error("{command}: {error}")]
    System { command: &'static str, error: io::Error },
    /// It did not reach the disk, or the disk did not answer.
    #[error("{command}: the host adapter answers {host:#06x}, its driver {driver:#06x}")]
    Lost { command: &'static str, host: u16, driver: u16 },
    /// The disk refused it.
    #[error("{command}: the disk answers status {status:#04x}, {sense}")]
    Refused { command: &'static str, status: u8, sense: Sense },
    /// Commands go to another disk than reads, as those for a partition do.
    #[error(
        "SCSI commands go to the whole disk of {sectors} blocks of {bytes} bytes, and this is a part of it or another: {here} of {here_bytes}"
    )]
    /// Capacity of the disk that takes commands, and of what is read.
    Elsewhere { sectors: u64, bytes: u32, here: u64, here_bytes: u32 },
    /// The answer is invalid.
    #[error("{command}: {what}")]
    Answer { command: &'static str, what: String },
}

impl CommandError {
    /// Whether the disk does not know the command, or takes it to be out of range.
    pub fn is_illegal_request(&self) -> bool {
        matches!(self, CommandError::Refused { sense, .. } if sense.key == Sense::ILLEGAL_REQUEST)
    }
}

/// Queries a disk for the places of its blocks.
#[derive(Debug)]
pub struct Translator<T> {
    transport: T,
}

impl<T: Transport> Translator<T> {
    /// A translator for a disk.
    pub fn new(transport: T) -> Translator<T> {
        Translator { transport }
    }

    /// Capacity of the disk.
    ///
    /// *Errors:* the disk's, to the longer command, or if it does not know that one, to the shorter.
    pub fn capacity(&mut self) -> Result<Capacity, CommandError> {
        let mut bytes = [0; 32];
        let long = Command::read_capacity_16(32);
        match self.transport.run(&long, Data::In(&mut bytes)) {
            Ok(length) => commands::capacity_16(&bytes[..length]),
            Err(error) if error.is_illegal_request() => {
                let length = self.transport.run(&Command::read_capacity_10(), Data::In(&mut bytes[..8]))?;
                commands::capacity_10(&bytes[..length])
            }
            Err(error) => Err(error),
        }
    }

    /// Checks that the disk translates addresses, with its first block.
    ///
    /// *Errors:* any other answer.
    pub fn tried(mut self) -> Result<Translator<T>, CommandError> {
        self.locate(Lbn(0)).map(|_| self)
    }

    /// Checks that the disk has the capacity of `info`.
    ///
    /// *Errors:* [`CommandError::Elsewhere`], and those of [`Translator::capacity`].
    pub fn for_disk(mut self, info: &DiskInfo) -> Result<Translator<T>, CommandError> {
        let Capacity { sectors, sector_bytes: bytes, .. } = self.capacity()?;
        let (here, here_bytes) = (info.sectors, info.sector_bytes);
        if (sectors, bytes) == (here, here_bytes) {
            Ok(self)
        } else {
            Err(CommandError::Elsewhere { sectors, bytes, here, here_bytes })
        }
    }

    /// Cylinder, head and sector of a block.
    ///
    /// *Errors:* a disk that does not translate, or an invalid answer.
    pub fn locate(&mut self, lbn: Lbn) -> Result<(u32, u32, u32), CommandError> {
        let supplied = Address::block(lbn);
        let found = self.translate(supplied, Address::PHYSICAL)?;
        match found.first() {
            Some(Address::Physical { cylinder, head, sector }) => Ok((*cylinder, *head, *sector)),
            other => Err(CommandError::Answer {
                command: "RECEIVE DIAGNOSTIC RESULTS",
                what: format!("{other:?} where the place of block {lbn} was asked for"),
            }),
        }
    }

    /// The block at a place; none if the disk reports that the place does not exist or holds no block.
    ///
    /// *Errors:* any other answer of the disk.
    pub fn block_at(&mut self, cylinder: u32, head: u32, sector: u32) -> Result<Option<Lbn>, CommandError> {
        let supplied = Address::Physical { cylinder, head, sector };
        let found = match self.translate(supplied, Address::SHORT) {
            Err(error) if error.is_illegal_request() => return Ok(None),
            found => found?,
        };
        Ok(found.iter().find_map(Address::lbn))
    }

    fn translate(&mut self, supplied: Address, format: u8) -> Result<Vec<Address>, CommandError> {
        let page = commands::translate_page(supplied, format)?;
        self.transport.run(&Command::send_diagnostic(page.len() as u16), Data::Out(&page))?;
        let mut bytes = [0; TRANSLATION_BYTES as usize];
        let receive = Command::receive_diagnostic(commands::TRANSLATE_ADDRESS, TRANSLATION_BYTES);
        let length = self.transport.run(&receive, Data::In(&mut bytes))?;
        commands::translated(&bytes[..length])
    }

    /// Cylinder, head and sector of the primary and grown defects.
    ///
    /// *Errors:* the disk's, and a list in another format.
    pub fn defects(&mut self) -> Result<Vec<(u32, u32, u32)>, CommandError> {
        let mut head = [0; 8];
        let command = |bytes| Command::read_defect_data_12(DefectFormat::PhysicalSector, bytes);
        let length = self.transport.run(&command(8), Data::In(&mut head))?;
        let bytes = commands::defect_bytes(&head[..length])?.saturating_add(8);
        if bytes > MOST_DEFECT_BYTES {
            let what = format!("a list of {bytes} bytes; at most {MOST_DEFECT_BYTES} are read");
            return Err(CommandError::Answer { command: "READ DEFECT DATA(12)", what });
        }
        let mut list = vec![0; bytes as usize];
        let length = self.transport.run(&command(bytes), Data::In(&mut list))?;
        commands::defects(&list[..length])
    }

    /// Answers a query of places; none for other commands.
    pub fn answer(&mut self, command: &ProbeCommand) -> Option<Outcome> {
        let found = match *command {
            ProbeCommand::Locate(lbn) => {
                self.locate(lbn).map(|(cylinder, head, sector)| Outcome::Place { cylinder, head, sector })
            }
            ProbeCommand::BlockAt(cylinder, head, sector) => {
                self.block_at(cylinder, head, sector).map(Outcome::Block)
            }
            ProbeCommand::Defects => self.defects().map(Outcome::Defects),
            _ => return None,
        };
        Some(found.unwrap_or_else(|error| {
            if error.is_illegal_request() { Outcome::Refused } else { Outcome::Failed }
        }))
    }
}

/// A disk that answers probes, with a translator.
#[derive(Debug)]
pub struct Translating<D, T> {
    disk: D,
    translator: Translator<T>,
    answered: VecDeque<(Probe, Answer)>,
    clock: Clock,
}

impl<D: ProbeTarget, T: Transport> Translating<D, T> {
    /// Combines a disk with a translator, whose answers have the times of this clock.
    pub fn new(disk: D, translator: Translator<T>, clock: Clock) -> Translating<D, T> {
        Translating { disk, translator, answered: VecDeque::new(), clock }
    }

    /// The disk.
    pub fn disk(&self) -> &D {
        &self.disk
    }
}

impl<D: ProbeTarget, T: Transport> ProbeTarget for Translating<D, T> {
    type Error = D::Error;

    fn info(&self) -> DiskInfo {
        DiskInfo { translates: true, ..self.disk.info() }
    }

    fn submit(&mut self, probe: Probe) -> Result<(), D::Error> {
        let issued = self.clock.now();
        match self.translator.answer(&probe.command) {
            Some(outcome) => {
                let answer = Answer { issued, ended: self.clock.now(), outcome };
                self.answered.push_back((probe, answer));
                Ok(())
            }
            None => self.disk.submit(probe),
        }
    }

    fn wait(&mut self) -> Result<(Probe, Answer), D::Error> {
        if let Some(answered) = self.answered.pop_front() {
            return Ok(answered);
        }
        self.disk.wait()
    }
}

#[cfg(test)]
mod tests;
