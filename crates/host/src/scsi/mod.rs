//! Real SCSI disks that say where their blocks lie: SCSI commands through Linux's `SG_IO`.
//!
//! [`Translator`] answers what an extraction asks of places (`Locate`, `BlockAt`, `Defects`); [`Translating`] puts it beside a disk
//! that answers everything else. [`commands`] makes and reads the bytes and knows no system; [`sg`] hands them to a device.
//! Only reading commands and the one that asks for a translation are sent: nothing on the disk changes.
//!
//! Source: T10 SPC-4 (SEND DIAGNOSTIC, RECEIVE DIAGNOSTIC RESULTS, sense data) and SBC-3 (READ CAPACITY, READ DEFECT DATA,
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

/// Bytes asked for of a translation.
const TRANSLATION_BYTES: u16 = 256;
/// Most bytes of a list of defects.
const MOST_DEFECT_BYTES: u32 = 1 << 24;

/// What carries SCSI commands to a disk.
pub trait Transport {
    /// Carries out a command, with data to the disk or room for what comes back; says how many bytes came.
    ///
    /// *Errors:* what keeps it from being carried out, or the disk's refusal.
    fn run(&mut self, command: &Command, data: Data<'_>) -> Result<usize, CommandError>;
}

/// The data of a command.
#[derive(Debug)]
pub enum Data<'a> {
    /// Bytes to the disk.
    Out(&'a [u8]),
    /// Room for bytes from it.
    In(&'a mut [u8]),
}

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum CommandError {
    /// The system could not hand it over.
    #[error("{command}: {error}")]
    System { command: &'static str, error: io::Error },
    /// It never came to the disk, or the disk did not answer.
    #[error("{command}: the host adapter answers {host:#06x}, its driver {driver:#06x}")]
    Lost { command: &'static str, host: u16, driver: u16 },
    /// The disk refused it.
    #[error("{command}: the disk answers status {status:#04x}, {sense}")]
    Refused { command: &'static str, status: u8, sense: Sense },
    /// Commands go to another disk than reads, as those for a partition do.
    #[error(
        "SCSI commands go to the whole disk of {sectors} blocks of {bytes} bytes, and this is a part of it or another: {here} of {here_bytes}"
    )]
    /// Blocks of the disk that takes commands.
    /// Bytes in each.
    /// Blocks of what is read.
    /// Bytes in each.
    Elsewhere { sectors: u64, bytes: u32, here: u64, here_bytes: u32 },
    /// Its answer makes no sense.
    #[error("{command}: {what}")]
    Answer { command: &'static str, what: String },
}

impl CommandError {
    /// Whether the disk knows the command and takes it to be out of its range, or does not know it.
    pub fn is_illegal_request(&self) -> bool {
        matches!(self, CommandError::Refused { sense, .. } if sense.key == Sense::ILLEGAL_REQUEST)
    }
}

/// Asks a disk where its blocks lie.
#[derive(Debug)]
pub struct Translator<T> {
    transport: T,
}

impl<T: Transport> Translator<T> {
    /// A disk that commands are carried to.
    pub fn new(transport: T) -> Translator<T> {
        Translator { transport }
    }

    /// Blocks of the disk, and how long they are.
    ///
    /// *Errors:* the disk's, by the longer command, and where it does not know that one, by the shorter.
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

    /// A disk that translates addresses, as it does for its first block.
    ///
    /// *Errors:* what it answers else.
    pub fn tried(mut self) -> Result<Translator<T>, CommandError> {
        self.locate(Lbn(0)).map(|_| self)
    }

    /// A disk that has the blocks of what is read.
    ///
    /// *Errors:* [`CommandError::Elsewhere`], and what it answers to the question for its capacity.
    pub fn for_disk(mut self, info: &DiskInfo) -> Result<Translator<T>, CommandError> {
        let Capacity { sectors, sector_bytes: bytes, .. } = self.capacity()?;
        let (here, here_bytes) = (info.sectors, info.sector_bytes);
        match (sectors, bytes) == (here, here_bytes) {
            true => Ok(self),
            false => Err(CommandError::Elsewhere { sectors, bytes, here, here_bytes }),
        }
    }

    /// Cylinder, head and sector of a block.
    ///
    /// *Errors:* a disk that does not translate, or answers otherwise.
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

    /// The block at a place; none where the disk says that the place does not exist, or holds none.
    ///
    /// *Errors:* all else that the disk answers.
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

    /// Cylinder, head and sector of the defects that were there from the beginning and that have grown.
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

    /// Answers a question about places; nothing where it is about something else.
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
        Some(found.unwrap_or_else(|error| match error.is_illegal_request() {
            true => Outcome::Refused,
            false => Outcome::Failed,
        }))
    }
}

/// A disk that answers probes, and beside it what translates.
#[derive(Debug)]
pub struct Translating<D, T> {
    disk: D,
    translator: Translator<T>,
    answered: VecDeque<(Probe, Answer)>,
    clock: Clock,
}

impl<D: ProbeTarget, T: Transport> Translating<D, T> {
    /// Puts a translator beside a disk, whose answers are of this clock.
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
