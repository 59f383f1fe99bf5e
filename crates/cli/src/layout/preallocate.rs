//! `headstack layout preallocate`: makes a file whose blocks lie on whole tracks.

use super::partition::{MapArgs, Span};
use super::reorganize::{bar, check, failure};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::units::{capacity, count, grouped, parse_bytes};
use crate::versioned;
use headstack_host::ext4::online::{Mover, OnlineError};
use headstack_host::extents;
use headstack_tracks::crossings::Crossings;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Permissions of a new file, before the process's umask applies.
const MODE: u32 = 0o666;

/// Make a file of zeros whose blocks are preallocated on whole tracks of a mounted ext4.
///
/// The file appears under its name once it is complete. A run that ends earlier leaves no file.
#[derive(clap::Args)]
pub(crate) struct Preallocate {
    #[command(flatten)]
    map: MapArgs,
    /// The new file.
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Its size.
    #[arg(value_name = "SIZE", value_parser = parse_bytes)]
    size: u64,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(JsonSchema, Serialize)]
struct PreallocatedFile {
    path: String,
    partition: Span,
    bytes: u64,
    extents: u64,
    tracks: u64,
    crossings: u64,
    /// Extents that begin a track.
    extents_on_track: u64,
}

impl Preallocate {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let wrong =
            |error: &dyn std::fmt::Display| Failure::Input(format!("{}: {error}", self.path.display()));
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if self.path.symlink_metadata().is_ok() {
            return Err(wrong(&"exists already; name a new file"));
        }
        let (mapped, source) = self.map.read_around(folder)?;
        let block_bytes = check(folder)?;
        let tracks = mapped.block_tracks(block_bytes)?;
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, folder, flags, Mode::from_raw_mode(MODE));
        let file = File::from(file.map_err(|error| wrong(&error))?);
        self.fill(&file, folder, &Mover::new(tracks, block_bytes), block_bytes)?;
        file.set_len(self.size).and_then(|()| file.sync_all()).map_err(|error| wrong(&error))?;

        let found = extents::extents_of(&file).map_err(|reported| wrong(&reported))?;
        let blocks: Vec<_> = found
            .extents
            .iter()
            .map(|extent| extent.device.start / block_bytes..extent.device.end.div_ceil(block_bytes))
            .collect();
        let counted = tracks.count(&blocks).map_err(|extent| wrong(&mapped.outside(&extent)))?;
        self.link(&file)?;
        let Crossings { extents, tracks, crossings, on_track, .. } = counted;
        if self.json {
            let reported = PreallocatedFile {
                path: self.path.display().to_string(),
                partition: mapped.span,
                bytes: self.size,
                extents,
                tracks,
                crossings,
                extents_on_track: on_track,
            };
            versioned::print(&reported, out)?;
        } else {
            writeln!(out, "partition  {} ({source})", mapped.span)?;
            let (size, extents) = (capacity(self.size), count(extents as usize, "extent"));
            let (tracks, crossings) = (count(tracks as usize, "track"), grouped(crossings));
            writeln!(out, "{}: {size} in {extents} on {tracks}, {crossings} crossings", self.path.display())?;
        }
        Ok(())
    }

    fn fill(&self, file: &File, folder: &Path, mover: &Mover<'_>, block_bytes: u64) -> Result<(), Failure> {
        let interrupt = Interrupt::watch()?;
        let bar = bar(self.size);
        bar.set_message(self.path.display().to_string());
        let filled = mover.preallocate(folder, file, self.size.div_ceil(block_bytes), &mut |blocks| {
            bar.inc(blocks * block_bytes);
            match interrupt.received() {
                None => ControlFlow::Continue(()),
                Some(_) => ControlFlow::Break(()),
            }
        });
        bar.finish_and_clear();
        filled.map_err(|error| match (&error, interrupt.received()) {
            (OnlineError::Interrupted, Some(_)) => {
                Failure::Check(format!("{}: {error}; no file was made", self.path.display()))
            }
            _ => failure(&self.path, &error),
        })
    }

    /// Gives the file its name.
    fn link(&self, file: &File) -> Result<(), Failure> {
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        let linked = rustix::fs::linkat(CWD, own, CWD, &self.path, AtFlags::SYMLINK_FOLLOW);
        linked.map_err(|error| {
            let reported = match error {
                Errno::EXIST => "exists already; name a new file".to_string(),
                error => error.to_string(),
            };
            Failure::Input(format!("{}: {reported}", self.path.display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schema_is_that_of_the_type() {
        versioned::schema::check::<PreallocatedFile>("layout preallocate");
    }
}
