//! A load file: generators described by keys.

use super::SimLoad;
use crate::failure::Failure;
use crate::files;
use crate::sim::outcome::{LoadNotes, ReadyLoad};
use headstack_model::Nanos;
use headstack_workload::load_file::LoadFile;
use headstack_workload::{Load, Poll, VolumeInfo};
use std::path::Path;

struct Generated(Box<dyn Load>);

impl Load for Generated {
    fn poll(&mut self, now: Nanos) -> Poll {
        self.0.poll(now)
    }

    fn handle_completion(&mut self, now: Nanos, id: u64) {
        self.0.handle_completion(now, id);
    }
}

impl SimLoad for Generated {}

/// The load of the file at `path`.
pub(super) fn ready(path: &Path, volumes: &[VolumeInfo], seed: u64) -> Result<ReadyLoad, Failure> {
    let shown = path.display().to_string();
    let file = LoadFile::parse(&files::read_text(path)?, &shown).map_err(Failure::input)?;
    let load = file.build(volumes, seed).map_err(Failure::input)?;
    let notes = LoadNotes::of_one_job(super::file_name(path), "load file".to_string());
    Ok(ReadyLoad { load: Box::new(Generated(load)), notes })
}
