//! Drives without a file, made from their data sheets alone, as `headstack drive new` makes them.
//!
//! Modelled: what a sheet says. Not modelled: anything that was measured on the drive; its firmware is what the model assumes for its
//! year and interface.
//! *Source:* the makers' data sheets, as recalled; a rate that a sheet gives as a peak is replaced by the sustained one.

use crate::study::StudyError;
use headstack_model::firmware::Recording;
use headstack_model::sheet::DataSheet;
use headstack_model::spec::Interface;
use headstack_model::{DriveSpec, drives};

/// The figures of a sheet that the study uses.
struct Sheet {
    name: &'static str,
    title: &'static str,
    year: u32,
    /// Class of firmware: that of its maker and year, or the one of drives of which nothing is known.
    firmware: &'static str,
    capacity_bytes: u64,
    rpm: f64,
    /// Sustained rate on the outermost tracks.
    mb_s: f64,
    /// Average seeks of a read and of a write.
    seeks_ms: [f64; 2],
    buffer_mib: u64,
    interface: Interface,
    /// Commands that may be outstanding.
    depth: u32,
}

const SHEETS: [Sheet; 12] = [
    Sheet {
        name: "wd740gd",
        title: "Western Digital Raptor WD740GD, 74 GB",
        year: 2003,
        firmware: "ata-2003",
        capacity_bytes: 74_355_769_344,
        rpm: 10_000.0,
        mb_s: 72.0,
        seeks_ms: [4.5, 5.9],
        buffer_mib: 8,
        interface: Interface::Sata,
        depth: 1,
    },
    Sheet {
        name: "hts721010g9",
        title: "Hitachi Travelstar 7K100 HTS721010G9SA00, 100 GB",
        year: 2005,
        firmware: "hitachi-2005",
        capacity_bytes: 100_030_242_816,
        rpm: 7200.0,
        mb_s: 61.0,
        seeks_ms: [10.0, 11.0],
        buffer_mib: 8,
        interface: Interface::Sata,
        depth: 32,
    },
    Sheet {
        name: "wd5000aacs",
        title: "Western Digital Caviar GP WD5000AACS, 500 GB",
        year: 2007,
        firmware: "sata-2005",
        capacity_bytes: 500_107_862_016,
        rpm: 5400.0,
        mb_s: 75.0,
        seeks_ms: [8.9, 9.9],
        buffer_mib: 16,
        interface: Interface::Sata,
        depth: 32,
    },
    Sheet {
        name: "hd103uj",
        title: "Samsung SpinPoint F1 HD103UJ, 1 TB",
        year: 2007,
        firmware: "samsung-2007",
        capacity_bytes: 1_000_204_886_016,
        rpm: 7200.0,
        mb_s: 120.0,
        seeks_ms: [8.9, 9.7],
        buffer_mib: 32,
        interface: Interface::Sata,
        depth: 32,
    },
    Sheet {
        name: "st3500418as",
        title: "Seagate Barracuda 7200.12 ST3500418AS, 500 GB",
        year: 2009,
        firmware: "seagate-2009",
        capacity_bytes: 500_107_862_016,
        rpm: 7200.0,
        mb_s: 125.0,
        seeks_ms: [8.5, 9.5],
        buffer_mib: 16,
        interface: Interface::Sata,
        depth: 32,
    },
    Sheet {
        name: "hd502hj",
        title: "Samsung SpinPoint F3 HD502HJ, 500 GB",
        year: 2009,
        firmware: "samsung-2007",
        capacity_bytes: 500_107_862_016,
        rpm: 7200.0,
        mb_s: 145.0,
        seeks_ms: [8.9, 9.7],
        buffer_mib: 16,
        interface: Interface::Sata,
        depth: 32,
    },
    Sheet {
        name: "wd7500bpvt",
        title: "Western Digital Scorpio Blue WD7500BPVT, 750 GB",
        year: 2010,
        firmware: "sata-2005",
        capacity_bytes: 750_156_374_016,
        rpm: 5400.0,
        mb_s: 100.0,
        seeks_ms: [12.0, 13.0],
        buffer_mib: 8,
        interface: Interface::Sata,
        depth: 32,
    },
    Sheet {
        name: "mg04aca400n",
        title: "Toshiba MG04ACA400N, 4 TB",
        year: 2014,
        firmware: "toshiba-2014",
        capacity_bytes: 4_000_787_030_016,
        rpm: 7200.0,
        mb_s: 205.0,
        seeks_ms: [8.5, 9.5],
        buffer_mib: 128,
        interface: Interface::Sata,
        depth: 32,
    },
    Sheet {
        name: "ultrastar-he8",
        title: "HGST Ultrastar He8 HUH728080ALE604, 8 TB",
        year: 2014,
        firmware: "hgst-2014",
        capacity_bytes: 8_001_563_222_016,
        rpm: 7200.0,
        mb_s: 205.0,
        seeks_ms: [8.0, 8.6],
        buffer_mib: 128,
        interface: Interface::Sata,
        depth: 32,
    },
    Sheet {
        name: "ultrastar-he10",
        title: "HGST Ultrastar He10 HUH721010ALE604, 10 TB",
        year: 2015,
        firmware: "hgst-2014",
        capacity_bytes: 10_000_831_348_736,
        rpm: 7200.0,
        mb_s: 249.0,
        seeks_ms: [8.0, 8.6],
        buffer_mib: 256,
        interface: Interface::Sata,
        depth: 32,
    },
    Sheet {
        name: "st8000nm0055",
        title: "Seagate Enterprise Capacity ST8000NM0055, 8 TB",
        year: 2016,
        firmware: "seagate-enterprise-2016",
        capacity_bytes: 8_001_563_222_016,
        rpm: 7200.0,
        mb_s: 249.0,
        seeks_ms: [8.5, 9.5],
        buffer_mib: 256,
        interface: Interface::Sata,
        depth: 32,
    },
    Sheet {
        name: "st10000nm0016",
        title: "Seagate Enterprise Capacity ST10000NM0016, 10 TB",
        year: 2016,
        firmware: "seagate-enterprise-2016",
        capacity_bytes: 10_000_831_348_736,
        rpm: 7200.0,
        mb_s: 249.0,
        seeks_ms: [8.5, 9.5],
        buffer_mib: 256,
        interface: Interface::Sata,
        depth: 32,
    },
];

/// The drive of this name: made from its sheet, or shipped.
pub(super) fn load(name: &str) -> Result<DriveSpec, StudyError> {
    match SHEETS.iter().find(|sheet| sheet.name == name) {
        Some(sheet) => sheet.drive(),
        None => Ok(drives::load(name)?),
    }
}

impl Sheet {
    /// Drives of a terabyte or more that have physical sectors of 512 bytes.
    fn physical_sector_bytes(&self) -> Option<u32> {
        (self.name == "mg04aca400n" || self.name == "hd103uj").then_some(512)
    }

    fn drive(&self) -> Result<DriveSpec, StudyError> {
        let sheet = DataSheet {
            name: self.name.to_string(),
            title: self.title.to_string(),
            capacity_bytes: self.capacity_bytes,
            rpm: self.rpm,
            mb_s: self.mb_s,
            seek_ms: self.seeks_ms[0],
            inner_mb_s: None,
            heads: None,
            track_to_track_ms: None,
            full_stroke_ms: None,
            write_seek_ms: Some(self.seeks_ms[1]),
            cache_bytes: Some(self.buffer_mib << 20),
            write_cache: None,
            interface: Some(self.interface),
            interface_mb_s: None,
            queue_depth: Some(self.depth),
            sector_bytes: None,
            physical_sector_bytes: self.physical_sector_bytes(),
            year: Some(self.year),
            recording: Recording::Conventional,
            firmware: Some(self.firmware.to_string()),
        };
        let text =
            sheet.drive_file().map_err(|error| StudyError::Input(format!("{}: {error}", self.name)))?;
        Ok(DriveSpec::parse(&text, self.name)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sheet_makes_a_drive_of_its_capacity() {
        for sheet in &SHEETS {
            let drive = load(sheet.name).unwrap_or_else(|error| panic!("{error}"));
            let bytes = drive.capacity_sectors * u64::from(drive.sector_bytes);
            assert!(bytes.abs_diff(sheet.capacity_bytes) < 4096, "{}: {bytes}", sheet.name);
            assert_eq!((drive.queue.depth, drive.year), (sheet.depth, Some(sheet.year)), "{}", sheet.name);
        }
    }
}
