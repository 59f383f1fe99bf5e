//! `disksim_logorg`: how drives make an array.

use crate::SpecError;
use crate::fields::{Fields, Notes, words};
use crate::parse::Block;
use crate::spec::{Setup, SetupArray, SetupOrganisation};
use crate::topology::PRINTS;

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
