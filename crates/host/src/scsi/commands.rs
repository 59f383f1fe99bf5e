//! SCSI commands and their data, as bytes.
//!
//! *Source:* T10 SPC-4 for SEND DIAGNOSTIC (6.42), RECEIVE DIAGNOSTIC RESULTS (6.31) and sense data (4.5); SBC-3 for READ CAPACITY
//! (5.15, 5.16), READ DEFECT DATA(12) (5.18), the address formats and the Translate Address pages.

use super::CommandError;
use headstack_model::Lbn;
use std::fmt;

/// Code of the Translate Address diagnostic pages.
pub const TRANSLATE_ADDRESS: u8 = 0x40;

const RECEIVE: &str = "RECEIVE DIAGNOSTIC RESULTS";
const DEFECTS: &str = "READ DEFECT DATA(12)";

/// A command descriptor block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name in the standard.
    pub name: &'static str,
    bytes: [u8; 16],
    length: usize,
}

impl Command {
    fn new(name: &'static str, given: &[u8]) -> Command {
        let mut bytes = [0; 16];
        bytes[..given.len()].copy_from_slice(given);
        Command { name, bytes, length: given.len() }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// SEND DIAGNOSTIC of a page of `length` bytes (PF), without a self-test.
    pub fn send_diagnostic(length: u16) -> Command {
        let [high, low] = length.to_be_bytes();
        Command::new("SEND DIAGNOSTIC", &[0x1D, 0x10, 0, high, low, 0])
    }

    /// RECEIVE DIAGNOSTIC RESULTS of a page (PCV), at most `most` bytes.
    pub fn receive_diagnostic(page: u8, most: u16) -> Command {
        let [high, low] = most.to_be_bytes();
        Command::new(RECEIVE, &[0x1C, 0x01, page, high, low, 0])
    }

    /// READ CAPACITY(10).
    pub fn read_capacity_10() -> Command {
        Command::new("READ CAPACITY(10)", &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    /// READ CAPACITY(16): SERVICE ACTION IN(16), action 0x10, at most `most` bytes.
    pub fn read_capacity_16(most: u32) -> Command {
        let mut bytes = [0; 16];
        (bytes[0], bytes[1]) = (0x9E, 0x10);
        bytes[10..14].copy_from_slice(&most.to_be_bytes());
        Command::new("READ CAPACITY(16)", &bytes)
    }

    /// READ DEFECT DATA(12) of both lists, primary and grown, at most `most` bytes.
    pub fn read_defect_data_12(format: DefectFormat, most: u32) -> Command {
        let mut bytes = [0; 12];
        (bytes[0], bytes[1]) = (0xB7, 0x18 | format as u8);
        bytes[6..10].copy_from_slice(&most.to_be_bytes());
        Command::new(DEFECTS, &bytes)
    }
}

/// Address format of a list of defects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefectFormat {
    /// Cylinder, head and sector.
    PhysicalSector = 0b101,
}

/// An address in eight bytes, as in the translation pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Address {
    /// A block below 2³².
    Short(u32),
    /// A block.
    Long(u64),
    /// A physical sector; the cylinder has 24 bits and the head eight.
    Physical { cylinder: u32, head: u32, sector: u32 },
}

impl Address {
    /// Format of [`Address::Short`].
    pub const SHORT: u8 = 0b000;
    /// Format of [`Address::Long`].
    pub const LONG: u8 = 0b011;
    /// Format of [`Address::Physical`].
    pub const PHYSICAL: u8 = 0b101;

    /// A block, in the shortest format that can hold it.
    pub fn block(lbn: Lbn) -> Address {
        u32::try_from(lbn.0).map_or(Address::Long(lbn.0), Address::Short)
    }

    /// The block, if it is an address of one.
    pub fn lbn(&self) -> Option<Lbn> {
        match *self {
            Address::Short(lbn) => Some(Lbn(u64::from(lbn))),
            Address::Long(lbn) => Some(Lbn(lbn)),
            Address::Physical { .. } => None,
        }
    }

    fn format(&self) -> u8 {
        match self {
            Address::Short(_) => Address::SHORT,
            Address::Long(_) => Address::LONG,
            Address::Physical { .. } => Address::PHYSICAL,
        }
    }

    /// Its bytes; none if a number is too large for its field.
    pub fn bytes(&self) -> Option<[u8; 8]> {
        match *self {
            Address::Short(lbn) => Some((u64::from(lbn) << 32).to_be_bytes()),
            Address::Long(lbn) => Some(lbn.to_be_bytes()),
            Address::Physical { cylinder, head, sector } => {
                let fits = cylinder < 1 << 24 && head < 1 << 8;
                let bits = u64::from(cylinder) << 40 | u64::from(head) << 32 | u64::from(sector);
                fits.then(|| bits.to_be_bytes())
            }
        }
    }

    /// The address in this format; none for any other format.
    fn decode(format: u8, bytes: [u8; 8]) -> Option<Address> {
        let bits = u64::from_be_bytes(bytes);
        match format {
            Address::SHORT => Some(Address::Short((bits >> 32) as u32)),
            Address::LONG => Some(Address::Long(bits)),
            Address::PHYSICAL => Some(Address::Physical {
                cylinder: (bits >> 40) as u32,
                head: (bits >> 32) as u32 & 0xFF,
                sector: bits as u32,
            }),
            _ => None,
        }
    }
}

/// The page that requests the translation of an address into a format.
///
/// *Errors:* an address that does not fit.
pub fn translate_page(supplied: Address, format: u8) -> Result<[u8; 14], CommandError> {
    let address = supplied.bytes().ok_or_else(|| CommandError::Answer {
        command: "SEND DIAGNOSTIC",
        what: format!("{supplied:?} does not fit 24 bits of cylinder and 8 of head"),
    })?;
    let mut page = [0; 14];
    // Page length: ten bytes after the first four.
    (page[0], page[3]) = (TRANSLATE_ADDRESS, 10);
    (page[4], page[5]) = (supplied.format(), format);
    page[6..].copy_from_slice(&address);
    Ok(page)
}

/// The addresses in the page of the answer. A block may have several, and a physical sector none.
///
/// *Errors:* another page, one shorter than its length says, and an unknown format.
pub fn translated(bytes: &[u8]) -> Result<Vec<Address>, CommandError> {
    let wrong = |what: String| CommandError::Answer { command: RECEIVE, what };
    let head: [u8; 4] =
        bytes.get(..4).and_then(|head| head.try_into().ok()).ok_or_else(|| short(RECEIVE, bytes, 4))?;
    if head[0] != TRANSLATE_ADDRESS {
        return Err(wrong(format!("byte 0: page {:#04x}; {TRANSLATE_ADDRESS:#04x} was asked for", head[0])));
    }
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let page = bytes.get(4..4 + length).ok_or_else(|| short(RECEIVE, bytes, 4 + length))?;
    let Some((formats, addresses)) = page.split_at_checked(2) else { return Ok(Vec::new()) };
    let format = formats[1] & 0b111;
    let (addresses, rest) = addresses.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(wrong(format!("byte 2: a page of {length} bytes; it has 2 and 8 for each address")));
    }
    let address = |bytes: &[u8; 8]| {
        Address::decode(format, *bytes)
            .ok_or_else(|| wrong(format!("byte 5: format {format}; 0, 3 and 5 are known")))
    };
    addresses.iter().map(address).collect()
}

/// Capacity of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Capacity {
    pub sectors: u64,
    /// Bytes of a block.
    pub sector_bytes: u32,
    pub physical_sectors: u32,
}

/// The capacity from the answer of READ CAPACITY(10).
///
/// *Errors:* too few bytes, and a disk too large for this command.
pub fn capacity_10(bytes: &[u8]) -> Result<Capacity, CommandError> {
    let command = "READ CAPACITY(10)";
    let last = number(command, bytes, 0, 4)?;
    if last == u64::from(u32::MAX) {
        let what = "the disk has more blocks than this command can tell".to_string();
        return Err(CommandError::Answer { command, what });
    }
    Ok(Capacity {
        sectors: last + 1,
        sector_bytes: number(command, bytes, 4, 4)? as u32,
        physical_sectors: 1,
    })
}

/// The capacity from the answer of READ CAPACITY(16).
///
/// *Errors:* too few bytes, and a disk of 2⁶⁴ blocks.
pub fn capacity_16(bytes: &[u8]) -> Result<Capacity, CommandError> {
    let command = "READ CAPACITY(16)";
    let sectors = number(command, bytes, 0, 8)?.checked_add(1);
    let sectors = sectors.ok_or_else(|| CommandError::Answer {
        command,
        what: "byte 0: the last block is 2^64-1".to_string(),
    })?;
    let exponent = number(command, bytes, 13, 1)? & 0x0F;
    let sector_bytes = number(command, bytes, 8, 4)? as u32;
    Ok(Capacity { sectors, sector_bytes, physical_sectors: 1 << exponent })
}

/// Length in bytes of the defect list after its header.
///
/// *Errors:* too few bytes.
pub fn defect_bytes(bytes: &[u8]) -> Result<u32, CommandError> {
    number(DEFECTS, bytes, 4, 4).map(|length| length as u32)
}

/// Cylinder, head and sector of each defect in a list.
///
/// *Errors:* a list shorter than its length says, or in another format, which disks may choose.
pub fn defects(bytes: &[u8]) -> Result<Vec<(u32, u32, u32)>, CommandError> {
    let length = defect_bytes(bytes)? as usize;
    let list = bytes.get(8..8 + length).ok_or_else(|| short(DEFECTS, bytes, 8 + length))?;
    let wrong = |what: String| CommandError::Answer { command: DEFECTS, what };
    let format = bytes[1] & 0b111;
    if format != DefectFormat::PhysicalSector as u8 && length > 0 {
        return Err(wrong(format!("byte 1: defects in format {format}; 5 (physical sector) was asked for")));
    }
    let (entries, rest) = list.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(wrong(format!("byte 4: a list of {length} bytes; each defect has 8")));
    }
    // The standard's mark of a whole track; its number of sectors is not given here.
    let place = |bytes: &[u8; 8]| match Address::decode(Address::PHYSICAL, *bytes) {
        Some(Address::Physical { cylinder, head, sector: u32::MAX }) => Err(wrong(format!(
            "the whole track of cylinder {cylinder}, head {head} is a defect; only single sectors are understood"
        ))),
        Some(Address::Physical { cylinder, head, sector }) => Ok((cylinder, head, sector)),
        _ => Err(wrong("a defect that is no place".to_string())),
    };
    entries.iter().map(place).collect()
}

/// Why a disk refused a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Sense {
    pub key: u8,
    pub code: u8,
    pub qualifier: u8,
}

impl Sense {
    /// ILLEGAL REQUEST: a command or field that is unknown or out of range.
    pub const ILLEGAL_REQUEST: u8 = 5;
    /// RECOVERED ERROR: the command succeeded after recovery.
    pub const RECOVERED_ERROR: u8 = 1;
    /// UNIT ATTENTION: the disk reports an event, and did not carry out the command.
    pub const UNIT_ATTENTION: u8 = 6;

    /// Decodes sense data in fixed or descriptor format; all 0 if there are none.
    pub fn decode(bytes: &[u8]) -> Sense {
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        match at(0) & 0x7F {
            0x70 | 0x71 => Sense { key: at(2) & 0x0F, code: at(12), qualifier: at(13) },
            0x72 | 0x73 => Sense { key: at(1) & 0x0F, code: at(2), qualifier: at(3) },
            _ => Sense { key: 0, code: 0, qualifier: 0 },
        }
    }
}

impl fmt::Display for Sense {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = match self.key {
            0 => "no sense",
            Sense::RECOVERED_ERROR => "recovered error",
            2 => "not ready",
            3 => "medium error",
            4 => "hardware error",
            Sense::ILLEGAL_REQUEST => "illegal request",
            Sense::UNIT_ATTENTION => "unit attention",
            7 => "data protect",
            11 => "aborted command",
            _ => "another sense",
        };
        write!(out, "{key} ({:x}/{:02x}/{:02x})", self.key, self.code, self.qualifier)
    }
}

/// A big-endian number of up to eight bytes.
fn number(command: &'static str, bytes: &[u8], at: usize, length: usize) -> Result<u64, CommandError> {
    let field = bytes.get(at..at + length).ok_or_else(|| short(command, bytes, at + length))?;
    Ok(field.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn short(command: &'static str, bytes: &[u8], needed: usize) -> CommandError {
    CommandError::Answer {
        command,
        what: format!("byte {}: the answer ends here, and needs {needed} bytes", bytes.len()),
    }
}
