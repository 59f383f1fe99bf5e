//! The same on a zoned drive of 2020 whose LBNs run over bands of tracks: what an order gains by knowing more.

use super::queue::{self, Grid};
use super::show;
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::Section;
use headstack_model::drives;

const DRIVE: &str = "exos-x16";

/// Time per request under FCFS, rounded.
const TURN_MS: u32 = 13;

/// An order by LBN, and the same order by cylinder.
pub(super) const MAPPED: [(&str, &str, &str); 3] =
    [("sstf", "sstf-lbn", "sstf"), ("look", "look-lbn", "look"), ("c-look", "c-look", "c-look-cylinder")];

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    // The question is how well an order uses a queue. The limits of this drive's firmware and interface are a different question: the
    // window and the age limit are removed, and SAS has more tags.
    let mut spec = drives::load(DRIVE)?.on_sas();
    (spec.queue.window, spec.queue.age_limit_ms) = (None, None);
    let grid = Grid::run(setting, &spec, queue::every(setting, |length| TURN_MS * length))?;
    let mut measured = Vec::new();
    for length in [10, 100, 1000] {
        for order in ["c-look", "c-look-cylinder", "sptf"] {
            let gain = grid.gain(order, "fcfs", length);
            measured.extend(gain.map(|gain| Measured::new(format!("{DRIVE}.{order}.q{length}.gain"), gain)));
        }
    }
    for (name, by_lbn, by_cylinder) in MAPPED {
        measured.extend(
            saved(&grid, by_lbn, by_cylinder, 100)
                .map(|percent| Measured::new(format!("{DRIVE}.mapping.{name}.q100_percent"), percent)),
        );
    }
    let section = Section::new("Exos X16: the order over the queue")
        .with_text("The same reads on a drive of 16 TB, whose zones differ by half in their tracks and whose blocks run over one surface of 400 tracks after the other. An order that knows LBNs alone takes these for cylinders.")
        .with_text(format!("WSTF allows {TURN_MS} ms for each request of the queue."))
        .with_charts(show::figures(&grid))
        .with_tables(show::tables(&grid, queue::lengths(setting)));
    Ok(Findings { measured, sections: vec![section] })
}

/// The time that an order saves against another, in percent.
pub(super) fn saved(grid: &Grid, order: &str, by: &str, length: u32) -> Option<f64> {
    grid.gain(by, order, length).map(|gain| 100.0 * (1.0 - 1.0 / gain))
}
