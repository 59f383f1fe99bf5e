//! `disksim_logorg`: how drives make an array.

use crate::fields::{Fields, Notes, words};
use crate::parse::Block;
use crate::spec::Setup;
use crate::topology::PRINTS;
use headstack_model::SpecError;
use headstack_sim::rig::{ArraySpec, Organisation, ReadChoice, Rotation, WriteOrder};

/// Converts an array; one that only contains its drives is none.
pub(crate) fn convert(block: &Block, notes: &Notes, setup: &mut Setup) -> Result<(), SpecError> {
    let mut fields = Fields::new(block, notes);
    let word = |fields: &mut Fields, key: &str| {
        let met = fields.word(key)?.map(|(word, _)| word.to_string());
        met.ok_or_else(|| fields.error(key, "is missing"))
    };
    let addressing = word(&mut fields, "Addressing mode")?;
    let distribution = word(&mut fields, "Distribution scheme")?;
    let redundancy = word(&mut fields, "Redundancy scheme")?;
    let organisation = organisation(&fields, &distribution, &redundancy)?;
    let drives = words(&mut fields, "devices")?;
    if let Some(name) = drives.iter().find(|name| setup.drives.iter().all(|drive| drive.name != **name)) {
        return Err(fields.error("devices", format!("`{name}` is no drive of this set-up")));
    }
    let array = array(&mut fields, block, organisation, drives)?;
    for key in ["interval", "start time", "stop time", "file name"] {
        fields.skip(&format!("Time stamp {key}"), PRINTS);
    }
    fields.finish();
    if addressing == "Array" {
        setup.arrays.push(array);
    } else if organisation != Organisation::Concatenation {
        let place = &block.place;
        return Err(place.error(
            "Addressing mode",
            format!("`{addressing}` with `{distribution}` and `{redundancy}` is not modelled; `Array` is"),
        ));
    }
    Ok(())
}

fn organisation(fields: &Fields, distribution: &str, redundancy: &str) -> Result<Organisation, SpecError> {
    Ok(match (distribution, redundancy) {
        ("Asis", "Noredun") => Organisation::Concatenation,
        ("Striped", "Noredun") => Organisation::Striping,
        ("Asis" | "Striped", "Shadowed") => Organisation::Mirroring,
        ("Asis" | "Striped", "Parity_disk") => Organisation::ParityDrive,
        ("Asis" | "Striped", "Parity_rotated") => Organisation::Raid5,
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
    })
}

fn array(
    fields: &mut Fields,
    block: &Block,
    organisation: Organisation,
    drives: Vec<String>,
) -> Result<ArraySpec, SpecError> {
    let (unit, parity_unit) = (fields.count("Stripe unit")?, fields.count("Parity stripe unit")?);
    let copies = fields.count("Number of copies")?;
    let (choice_key, rotation_key) = ("Copy choice on read", "Parity rotation type");
    let (choice, rotation) = (fields.count(choice_key)?, fields.count(rotation_key)?);
    let ratio = fields.number("RMW vs. reconstruct")?;
    let ordered = fields.flag("Synch writes for safety")?;
    for (key, met, last) in [(choice_key, choice, 6), (rotation_key, rotation, 4)] {
        if !(1..=last).contains(&met) {
            return Err(fields.error(key, format!("{met} is none of 1 to {last}")));
        }
    }
    let parity = matches!(organisation, Organisation::ParityDrive | Organisation::Raid5);
    Ok(ArraySpec {
        name: block.name.clone().unwrap_or_else(|| "array".to_string()),
        organisation,
        drives,
        stripe_unit_sectors: Some(u64::from(unit)).filter(|_| organisation != Organisation::Concatenation),
        parity_unit_sectors: Some(u64::from(parity_unit)).filter(|_| parity && parity_unit != unit),
        copies: if organisation == Organisation::Mirroring { copies } else { 2 },
        read_choice: match choice {
            1 => ReadChoice::Primary,
            2 => ReadChoice::Random,
            3 => ReadChoice::RoundRobin,
            4 => ReadChoice::Nearest,
            _ => ReadChoice::ShortestQueue,
        },
        rotation: match rotation {
            2 => Rotation::LeftAsymmetric,
            3 => Rotation::RightAsymmetric,
            4 => Rotation::RightSymmetric,
            _ => Rotation::LeftSymmetric,
        },
        read_modify_write_ratio: Some(ratio).filter(|_| parity),
        write_order: if ordered || !parity { WriteOrder::Together } else { WriteOrder::DataFirst },
        track_aligned: false,
        fails: Vec::new(),
        failed: Vec::new(),
        spares: Vec::new(),
        interference_ratio: 0.0,
        rebuild_mb_s: None,
    })
}
