//! `disksim_logorg`: how drives make an array.

use crate::SpecError;
use crate::fields::{Fields, Notes};
use crate::parse::Block;
use crate::setup::{Setup, words};
use crate::topology::PRINTS;

/// How the blocks of an array lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupOrganisation {
    /// One drive after the other.
    Concatenation,
    /// In stripe units.
    Striping,
    /// Copies, striped where there are more drives.
    Mirroring,
    /// Stripes with parity on one drive.
    ParityDrive,
    /// Stripes with parity on a drive in turn.
    ParityRotated,
}

/// An array of a set-up.
#[derive(Clone, Debug, PartialEq)]
pub struct SetupArray {
    /// Its name.
    pub name: String,
    /// How its blocks lie.
    pub organisation: SetupOrganisation,
    /// The names of its drives.
    pub drives: Vec<String>,
    /// Blocks of a stripe unit.
    pub stripe_unit_sectors: u32,
    /// Blocks of a unit of parity.
    pub parity_unit_sectors: u32,
    /// Copies of everything.
    pub copies: u32,
    /// Which copy is read: 1 the first, 2 any, 3 in turn, 4 the nearest, 5 and 6 that with the shortest queue.
    pub read_choice: u32,
    /// How parity wanders: 1 and 2 to the left, symmetric or not, 3 and 4 to the right, not or symmetric.
    pub rotation: u32,
    /// Share of a stripe up to which old data and parity are read.
    pub read_modify_write_ratio: f64,
    /// Whether nothing is written before all is read.
    pub ordered_writes: bool,
}

/// An array, unless it is each of its drives for itself.
pub(crate) fn convert(block: &Block, notes: &Notes, setup: &mut Setup) -> Result<(), SpecError> {
    let mut fields = Fields::new(block, notes);
    let word = |fields: &mut Fields, key: &str| {
        let met = fields.word(key)?.map(|(word, _)| word.to_string());
        met.ok_or_else(|| fields.error(key, "is missing"))
    };
    let addressing = word(&mut fields, "Addressing mode")?;
    let distribution = word(&mut fields, "Distribution scheme")?;
    let redundancy = word(&mut fields, "Redundancy scheme")?;
    let organisation = match (distribution.as_str(), redundancy.as_str()) {
        ("Asis", "Noredun") => SetupOrganisation::Concatenation,
        ("Striped", "Noredun") => SetupOrganisation::Striping,
        ("Asis" | "Striped", "Shadowed") => SetupOrganisation::Mirroring,
        ("Asis" | "Striped", "Parity_disk") => SetupOrganisation::ParityDrive,
        ("Asis" | "Striped", "Parity_rotated") => SetupOrganisation::ParityRotated,
        ("Random" | "Ideal", _) => {
            let message = format!("`{distribution}` is not modelled; Asis and Striped are");
            return Err(fields.error("Distribution scheme", message));
        }
        (_, "Noredun" | "Shadowed" | "Parity_disk" | "Parity_rotated") => {
            let message = format!("`{distribution}` is none of Asis, Striped, Random, Ideal");
            return Err(fields.error("Distribution scheme", message));
        }
        _ => {
            let message = format!("`{redundancy}` is none of Noredun, Shadowed, Parity_disk, Parity_rotated");
            return Err(fields.error("Redundancy scheme", message));
        }
    };
    let drives = words(&mut fields, "devices")?;
    if let Some(name) = drives.iter().find(|name| setup.drives.iter().all(|drive| drive.name != **name)) {
        return Err(fields.error("devices", format!("`{name}` is no drive of this set-up")));
    }
    let array = SetupArray {
        name: block.name.clone().unwrap_or_else(|| "array".to_string()),
        organisation,
        drives,
        stripe_unit_sectors: fields.count("Stripe unit")?,
        parity_unit_sectors: fields.count("Parity stripe unit")?,
        copies: fields.count("Number of copies")?,
        read_choice: fields.count("Copy choice on read")?,
        rotation: fields.count("Parity rotation type")?,
        read_modify_write_ratio: fields.number("RMW vs. reconstruct")?,
        ordered_writes: fields.flag("Synch writes for safety")?,
    };
    for (key, last) in [("Copy choice on read", 6), ("Parity rotation type", 4)] {
        let met = if last == 6 { array.read_choice } else { array.rotation };
        if !(1..=last).contains(&met) {
            return Err(fields.error(key, format!("{met} is none of 1 to {last}")));
        }
    }
    for key in ["interval", "start time", "stop time", "file name"] {
        fields.skip(&format!("Time stamp {key}"), PRINTS);
    }
    fields.finish();
    if addressing == "Array" {
        setup.arrays.push(array);
    } else if organisation != SetupOrganisation::Concatenation {
        let place = &block.place;
        return Err(place.error(
            "Addressing mode",
            format!("`{addressing}` with `{distribution}` and `{redundancy}` is not modelled; `Array` is"),
        ));
    }
    Ok(())
}
