//! The shape of an array, and its checks.

use super::units::Unit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How an array lays its blocks on drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Organisation {
    /// One drive after the other.
    Concatenation,
    /// In stripe units, from drive to drive in turn (RAID-0).
    Striping,
    /// `copies` of everything (RAID-1); with more drives than copies, striped over the first drives, of which the next ones,
    /// as many again, are the second copies, and so on.
    Mirroring,
    /// Striping with the parity of each stripe on the last drive (RAID-4).
    ParityDrive,
    /// Striping with the parity of each stripe on a drive in turn (RAID-5).
    #[serde(rename = "raid-5")]
    Raid5,
    /// As `raid-5`, with two drives' worth of parity.
    #[serde(rename = "raid-6")]
    Raid6,
    /// Two copies: the first striped over the outer halves of the drives, the second on the inner half of the next drive.
    ChainedDeclustering,
}

impl Organisation {
    /// Members' worth of data in a stripe of whole members; none where there is no stripe.
    pub fn data_members(self, members: u64, copies: u32) -> Option<u64> {
        let data = match self {
            Organisation::Striping => members,
            Organisation::Mirroring => members / u64::from(copies.max(1)),
            Organisation::ParityDrive | Organisation::Raid5 => members.checked_sub(1)?,
            Organisation::Raid6 => members.checked_sub(2)?,
            Organisation::Concatenation | Organisation::ChainedDeclustering => return None,
        };
        Some(data).filter(|data| *data > 0)
    }
}

impl fmt::Display for Organisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The word in the file is the name.
        self.serialize(f)
    }
}

/// How parity rotates over the drives.
///
/// *Source:* Lee and Katz, "Performance consequences of parity placement in disk arrays" (1991), for the four variants; for the
/// place of the second parity, Linux's `md` (after the first).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rotation {
    /// Parity moves left; data start after it, so that a run of units uses every drive.
    #[default]
    LeftSymmetric,
    /// Parity moves left; data start at the first drive.
    LeftAsymmetric,
    /// Parity moves right; data start at the first drive.
    RightAsymmetric,
    /// Parity moves right; data start after it.
    RightSymmetric,
}

/// Which copy is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadChoice {
    /// The first.
    Primary,
    /// One at random.
    Random,
    /// One after the other.
    RoundRobin,
    /// The one whose arm is nearest.
    Nearest,
    /// The one whose drive has the shortest queue; on a tie the nearest.
    #[default]
    ShortestQueue,
}

/// How a part of a row with parity is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// With the fewest reads.
    FewestReads,
    /// With the old data and parity read, where fewer units are written than this share of all drives; with the rest of the
    /// row read, where more are.
    Threshold(f64),
}

/// When to write data and parity, where the new parity needs reads first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteOrder {
    /// Both after all reads, so that data and parity disagree for no longer than their writes take.
    #[default]
    Together,
    /// Each block of data as soon as it is read on its own drive, or at once if no read is needed; parity after all reads.
    DataFirst,
}

/// The shape of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// How it lays its blocks on its members.
    pub organisation: Organisation,
    /// Blocks of each member.
    pub members: Vec<u64>,
    /// How long the stripe units are.
    pub unit: Unit,
    /// Copies, with mirroring.
    pub copies: u32,
    /// Which copy is read.
    pub read_choice: ReadChoice,
    /// How parity rotates over the members.
    pub rotation: Rotation,
    /// Blocks of a unit of parity, where it is not the stripe unit: parity moves to the next drive after each.
    pub parity_unit_sectors: Option<u64>,
    /// How a part of a row with parity is written.
    pub policy: Policy,
    /// What a write of data with parity waits for.
    pub write_order: WriteOrder,
    /// The members that have failed.
    pub failed: Vec<u32>,
    /// How many spares there are; they replace the failed members from the first on.
    pub spares: usize,
    /// Seed of the random read choice.
    pub seed: u64,
}

/// An invalid [`Shape`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ShapeError {
    /// The key of a rig's array.
    pub key: &'static str,
    /// The value met and what is allowed.
    pub message: String,
}

impl ShapeError {
    pub(super) fn new(key: &'static str, message: String) -> ShapeError {
        ShapeError { key, message }
    }
}

impl Shape {
    /// Whole members of these sizes in units of this length, with the defaults of a rig's array for the rest.
    pub fn new(organisation: Organisation, members: Vec<u64>, unit: Unit) -> Shape {
        Shape {
            organisation,
            members,
            unit,
            copies: 2,
            read_choice: ReadChoice::default(),
            rotation: Rotation::default(),
            parity_unit_sectors: None,
            policy: Policy::FewestReads,
            write_order: WriteOrder::default(),
            failed: Vec::new(),
            spares: 0,
            seed: 0,
        }
    }

    /// Most copies of a block.
    pub const COPIES_MAX: u32 = 16;

    /// Checks that these members can form the organisation.
    ///
    /// *Errors:* the first thing that is wrong.
    pub fn check(&self) -> Result<(), ShapeError> {
        let (organisation, drives) = (self.organisation, self.members.len());
        if !(2..=Shape::COPIES_MAX).contains(&self.copies) {
            let message = format!("{} is outside 2 to {} copies", self.copies, Shape::COPIES_MAX);
            return Err(ShapeError::new("copies", message));
        }
        let needed = match organisation {
            Organisation::Concatenation | Organisation::Striping => 1,
            Organisation::Mirroring => self.copies as usize,
            Organisation::ChainedDeclustering => 2,
            Organisation::ParityDrive | Organisation::Raid5 => 3,
            Organisation::Raid6 => 4,
        };
        if drives < needed {
            let message = format!("`{organisation}` needs {needed} drives at least, and {drives} are named");
            return Err(ShapeError::new("drives", message));
        }
        if organisation == Organisation::Mirroring && !drives.is_multiple_of(self.copies as usize) {
            let message = format!("{drives} drives are no multiple of {} copies", self.copies);
            return Err(ShapeError::new("drives", message));
        }
        self.check_unit()?;
        self.check_failed()
    }

    /// Whether a copy of everything, or the blocks to recover it from, is left without these members.
    pub(super) fn survives(&self, failed: &[u32]) -> bool {
        failed.len() <= self.survivable(failed)
    }

    /// How many of these failed members leave a copy of everything, or the blocks to recover it from.
    fn survivable(&self, gone: &[u32]) -> usize {
        let (failed, members) = (gone.len(), self.members.len() as u32);
        let gone = |member: u32| gone.contains(&(member % members));
        match self.organisation {
            Organisation::Concatenation | Organisation::Striping => 0,
            Organisation::ParityDrive | Organisation::Raid5 => 1,
            Organisation::Raid6 => 2,
            Organisation::Mirroring => {
                let sets = members / self.copies;
                match (0..sets).find(|set| (0..self.copies).all(|copy| gone(set + copy * sets))) {
                    Some(_) => failed - 1,
                    None => failed,
                }
            }
            Organisation::ChainedDeclustering => match (0..members).find(|one| gone(*one) && gone(one + 1)) {
                Some(_) => failed - 1,
                None => failed,
            },
        }
    }

    /// Checks that the failed members leave a copy of everything, or the blocks to recover it from.
    fn check_failed(&self) -> Result<(), ShapeError> {
        let (failed, survives) = (self.failed.len(), self.survivable(&self.failed));
        if failed > survives {
            let message = match self.organisation {
                Organisation::Mirroring | Organisation::ChainedDeclustering => {
                    "no copy is left of some blocks".to_string()
                }
                organisation => {
                    let drives = if survives == 1 { "drive" } else { "drives" };
                    format!("`{organisation}` survives {survives} failed {drives}, and {failed} are named")
                }
            };
            return Err(ShapeError::new("failed", message));
        }
        Ok(())
    }

    fn check_unit(&self) -> Result<(), ShapeError> {
        let one_set =
            self.organisation == Organisation::Mirroring && self.members.len() == self.copies as usize;
        // An access has its number of blocks in 32 bits.
        let least = self.members.iter().min().copied().unwrap_or(0).min(u64::from(u32::MAX));
        match &self.unit {
            Unit::Member if self.organisation == Organisation::Concatenation || one_set => Ok(()),
            Unit::Member => {
                let message = format!("`{}` needs a stripe unit, or `track_aligned`", self.organisation);
                Err(ShapeError::new("stripe_unit_sectors", message))
            }
            Unit::Sectors(sectors) if *sectors == 0 || *sectors > least => {
                let message = format!("{sectors} is outside 1 to {least} sectors");
                Err(ShapeError::new("stripe_unit_sectors", message))
            }
            Unit::Sectors(_) | Unit::Lengths(_) => Ok(()),
        }
    }
}
