//! Arrays: their keys and what they must keep. None is simulated yet.

use super::resolve::{Checked, check_names, within};
use super::spec::RigSpec;
use headstack_model::spec::{Fault, nearest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// How an array lays its blocks on drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Organisation {
    /// One drive after the other.
    Concatenation,
    /// In stripe units, from drive to drive in turn (RAID-0).
    Striping,
    /// `copies` of everything (RAID-1); with more drives than copies, striped over the sets of copies.
    Mirroring,
    /// Striping with the parity of each stripe on the last drive (RAID-4).
    ParityDrive,
    /// Striping with the parity of each stripe on a drive in turn (RAID-5).
    #[serde(rename = "raid-5")]
    Raid5,
    /// As `raid-5`, with two drives' worth of parity.
    #[serde(rename = "raid-6")]
    Raid6,
    /// Two copies, of which the second lies on the next drive.
    ChainedDeclustering,
}

impl fmt::Display for Organisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The word in the file is the name.
        self.serialize(f)
    }
}

/// How parity wanders over the drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rotation {
    /// Parity moves left; data start behind it, so that a run of units meets every drive.
    #[default]
    LeftSymmetric,
    /// Parity moves left; data start at the first drive.
    LeftAsymmetric,
    /// Parity moves right; data start at the first drive.
    RightAsymmetric,
    /// Parity moves right; data start behind it.
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
    /// The one whose drive has the shortest queue; of equals the nearest.
    #[default]
    ShortestQueue,
}

/// Drives that a load sees as one volume. Parsed and checked; no organisation is simulated yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// Name of the volume that it is.
    #[serde(default = "array")]
    pub name: String,
    /// How it lays its blocks on drives.
    pub organisation: Organisation,
    /// The drives by the names of their volumes; the name of drives of one kind stands for all of them.
    pub drives: Vec<String>,
    /// Blocks of a stripe unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_unit_sectors: Option<u64>,
    /// Blocks of a unit of parity, where it is not the stripe unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parity_unit_sectors: Option<u64>,
    /// Copies, with `mirroring`.
    #[serde(default = "two")]
    pub copies: u32,
    /// Which copy is read.
    #[serde(default)]
    pub read_choice: ReadChoice,
    /// How parity wanders, with `raid-5` and `raid-6`.
    #[serde(default)]
    pub rotation: Rotation,
    /// Share of a stripe up to which a write reads old data and parity, rather than the rest of the stripe.
    #[serde(default = "half")]
    pub read_modify_write_ratio: f64,
}

fn array() -> String {
    "array".to_string()
}

fn two() -> u32 {
    2
}

fn half() -> f64 {
    0.5
}

impl ArraySpec {
    /// The names of all its drives.
    ///
    /// *Errors:* a name that no drive of the rig has, or one twice.
    pub(super) fn members(&self, rig: &RigSpec) -> Result<Vec<String>, String> {
        let all: Vec<(String, usize)> = rig.drives().map(|drive| (drive.name, drive.group)).collect();
        let kind_of = |group: usize| rig.drive[group].keys.volume.as_deref();
        let mut members: Vec<String> = Vec::new();
        for name in &self.drives {
            let found = all.iter().filter(|(drive, group)| drive == name || kind_of(*group) == Some(name));
            let before = members.len();
            members.extend(found.map(|(drive, _)| drive.clone()));
            if members.len() == before {
                let known = all.iter().map(|(drive, _)| drive.as_str());
                let hint = nearest(name, known).map(|near| format!("; did you mean `{near}`?"));
                return Err(format!("no drive is called `{name}`{}", hint.unwrap_or_default()));
            }
        }
        let mut met = BTreeSet::new();
        match members.iter().find(|name| !met.insert(name.as_str())) {
            Some(twice) => Err(format!("`{twice}` stands there twice")),
            None => Ok(members),
        }
    }

    /// Blocks that its volume holds, of drives with so many each.
    pub(super) fn sectors(&self, drives: &[u64]) -> u64 {
        let unit = self.stripe_unit_sectors.unwrap_or(1).max(1);
        let count = drives.len() as u64;
        let least = drives.iter().min().copied().unwrap_or(0) / unit * unit;
        match self.organisation {
            Organisation::Concatenation => drives.iter().sum(),
            Organisation::Striping => least * count,
            Organisation::Mirroring => least * (count / u64::from(self.copies)),
            Organisation::ParityDrive | Organisation::Raid5 => least * (count - 1),
            Organisation::Raid6 => least * (count - 2),
            Organisation::ChainedDeclustering => least / 2 * count,
        }
    }

    fn check(&self, drives: usize, key: impl Fn(&str) -> String) -> Checked {
        let needed = match self.organisation {
            Organisation::Concatenation | Organisation::Striping => 1,
            Organisation::Mirroring => self.copies as usize,
            Organisation::ChainedDeclustering => 2,
            Organisation::ParityDrive | Organisation::Raid5 => 3,
            Organisation::Raid6 => 4,
        };
        within(&key("copies"), f64::from(self.copies), 2.0, 16.0, "copies")?;
        if drives < needed {
            let message =
                format!("`{}` needs {needed} drives at least, and {drives} are named", self.organisation);
            return Err(Fault::new(key("drives"), message));
        }
        if self.organisation == Organisation::Mirroring && !drives.is_multiple_of(self.copies as usize) {
            let message = format!("{drives} drives are no multiple of {} copies", self.copies);
            return Err(Fault::new(key("drives"), message));
        }
        let one_set = self.organisation == Organisation::Mirroring && drives == self.copies as usize;
        if self.organisation != Organisation::Concatenation && !one_set && self.stripe_unit_sectors.is_none()
        {
            let message = format!("`{}` needs a stripe unit", self.organisation);
            return Err(Fault::new(key("stripe_unit_sectors"), message));
        }
        for (name, unit) in [
            ("stripe_unit_sectors", self.stripe_unit_sectors),
            ("parity_unit_sectors", self.parity_unit_sectors),
        ] {
            within(&key(name), unit.unwrap_or(1) as f64, 1.0, 1e12, "sectors")?;
        }
        within(&key("read_modify_write_ratio"), self.read_modify_write_ratio, 0.0, 1.0, "of a stripe")
    }
}

/// Whether the arrays fit their drives.
pub(super) fn check(rig: &RigSpec) -> Checked {
    check_names("array", rig.array.iter().map(|array| &array.name))?;
    let mut taken = BTreeSet::new();
    for (index, array) in rig.array.iter().enumerate() {
        let key = |name: &str| format!("array[{index}].{name}");
        let members = array.members(rig).map_err(|message| Fault::new(key("drives"), message))?;
        array.check(members.len(), key)?;
        for member in members {
            if let Some(twice) = taken.replace(member) {
                return Err(Fault::new(key("drives"), format!("`{twice}` is in another array, too")));
            }
        }
    }
    Ok(())
}

/// What is asked for and not simulated yet.
pub(super) fn beyond(rig: &RigSpec) -> Checked {
    match rig.array.first() {
        Some(array) => {
            let message = format!("an array (`{}`) is not simulated yet", array.organisation);
            Err(Fault::new("array[0].organisation", message))
        }
        None => Ok(()),
    }
}
