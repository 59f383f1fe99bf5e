//! Striping on a loop of four SSA disks: over how many of them should a request go?
//!
//! Modelled: the study's load (processes that think, fork a thread a disk, and join), disks that serve in order of arrival,
//! SCSI commands of at most 128 KB one after the other, mechanics of the drive with spindles that are not in step,
//! electronics of the drive, the loop. Not modelled in the rows: the host's time for processes, threads, semaphores and commands,
//! and its adapter's; what they would change is tried (`host`). Then what the study left undone: the drives' buffers on, more
//! disks (each with its own way to the host), RAID-5.
//!
//! *Source:* the striping study, whose OCR lost most digits: `studies/striping/README.md` says how they were decoded.

mod cell;
mod claims;
mod grid;
mod host;
mod parity;
mod show;
#[cfg(test)]
mod tests;

use crate::study::{Findings, Length, Setting, Study, StudyError};
use cell::Buffer;
use claims::Grid;
use grid::{BUFFERED, DISKS, Kind, LARGER, Row};
use headstack_policy::stripe::advise::ForkJoin;

pub(crate) const STUDY: Study = Study {
    id: "striping",
    title: "Striping on a loop of four SSA disks",
    summary: "The best stripe unit over request size, MPL, think time, reads and writes, compared with stripe-unit advisors; then buffers on, more disks, RAID-5.",
    expect: include_str!("../../studies/striping/expect.tsv"),
    run,
};

const REQUESTS: u64 = 4000;

/// And in the short form.
const FEW: u64 = 800;

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let kinds = grid::of_the_study();
    let mut rows = runs(setting, &kinds)?.into_iter();
    let mut next = || rows.next().expect("there is a list of rows a kind");
    let (reads, writes, sequential) = (next(), next(), next());
    let grid = Grid { reads, writes, sequential, thinking: rows.collect() };
    let disk = cell::times(Buffer::None)?;
    let advisor = ForkJoin::new(disk.clone(), DISKS);
    let mut measured = claims::measure(&grid, &disk, &advisor);
    let mut sections = vec![
        show::responses(&grid, setting.length),
        show::best_units(&kinds, &grid),
        show::advisors(&kinds, &grid, &disk, &advisor),
        show::thinking(&grid),
    ];
    if setting.length == Length::Full {
        let buffered = runs(setting, &BUFFERED)?;
        sections.push(show::buffered(&buffered, &grid, &ForkJoin::new(cell::times(Buffer::Both)?, DISKS)));
        let larger = runs(setting, &LARGER)?;
        measured.extend(claims::more_disks(&larger[0]));
        sections.push(show::larger(&LARGER, &larger, &disk));
        sections.push(parity::section(setting, &disk)?);
    }
    sections.push(host::section(setting, setting.length.pick(REQUESTS, FEW))?);
    Ok(Findings { measured, sections })
}

fn runs(setting: &Setting<'_>, kinds: &[Kind]) -> Result<Vec<Vec<Row>>, StudyError> {
    let requests = setting.length.pick(REQUESTS, FEW);
    let points: Vec<_> = kinds.iter().flat_map(|kind| grid::points(kind, setting.length)).collect();
    let outcomes = setting.map(&points, |point| cell::measure(point, requests))?;
    let mut left = outcomes.as_slice();
    let kind = |kind: &Kind| {
        let (these, others) = left.split_at(grid::points(kind, setting.length).len());
        left = others;
        Row::gather(these)
    };
    Ok(kinds.iter().map(kind).collect())
}
