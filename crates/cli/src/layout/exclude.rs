//! `headstack layout exclude`: the blocks of a file system that span track boundaries.

use super::partition::{MapArgs, Mapped};
use crate::failure::{self, Failure};
use crate::files::{self, NewFile};
use crate::units::{capacity, grouped, memory, parse_bytes, significant};
use crate::versioned;
use headstack_tracks::exclude::{Boundaries, Exclusion};
use serde_json::{Value, json};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Which boundaries a block is left out at, as an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Which {
    /// At each boundary that lies within a block: that block.
    Spanned,
    /// At all boundaries: if a boundary lies between two blocks, the block in front of it.
    Every,
}

impl From<Which> for Boundaries {
    fn from(which: Which) -> Boundaries {
        match which {
            Which::Spanned => Boundaries::Spanned,
            Which::Every => Boundaries::Every,
        }
    }
}

/// List the blocks of a file system that span a track boundary, one per line, in the format of `mke2fs -l`.
///
/// The number of these blocks and their share of the space go to standard error.
#[derive(clap::Args)]
pub(crate) struct Exclude {
    #[command(flatten)]
    map: MapArgs,
    /// Size of a block of the file system.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "4096")]
    block: u64,
    /// The boundaries at which a block is listed.
    #[arg(long, value_name = "WHICH", default_value = "spanned")]
    boundaries: Which,
    /// Where to write the list. [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the count and the share as JSON.
    #[arg(long, requires = "output")]
    json: bool,
}

impl Exclude {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        files::check_apart(&[&self.map.map], &[("--output", self.output.as_deref())])?;
        let mapped = self.map.read()?;
        let exclusion = exclusion(&mapped, self.block, self.boundaries)?;
        match &self.output {
            Some(path) => {
                let file = NewFile::beside(path)?;
                let place = file.path().display().to_string();
                let mut buffered = BufWriter::new(file);
                let written = list(&exclusion, &mut buffered).and_then(|()| buffered.flush());
                written.map_err(|error| Failure::Input(format!("{place}: {error}")))?;
                let file = buffered.into_inner().map_err(|error| Failure::Output(error.into_error()))?;
                file.keep()?;
            }
            None => {
                let mut buffered = BufWriter::new(&mut *out);
                list(&exclusion, &mut buffered)?;
                buffered.flush()?;
            }
        }
        let given_up = GivenUp::reason_for(&exclusion, self.block);
        if self.json {
            versioned::print(&given_up.to_json(), out)?
        } else {
            failure::print_line(&given_up.to_string())
        }
        Ok(())
    }
}

pub(super) fn exclusion(mapped: &Mapped, block: u64, which: Which) -> Result<Exclusion<'_>, Failure> {
    Exclusion::new(mapped.view(), block, mapped.identity.sector_bytes, which.into())
        .map_err(|error| Failure::Input(format!("--block {block}: {error}")))
}

fn list(exclusion: &Exclusion<'_>, out: &mut impl Write) -> std::io::Result<()> {
    exclusion.iter().try_for_each(|block| writeln!(out, "{block}"))
}

pub(super) struct GivenUp {
    pub(super) excluded: u64,
    pub(super) blocks: u64,
    pub(super) block: u64,
}

impl GivenUp {
    fn reason_for(exclusion: &Exclusion<'_>, block: u64) -> GivenUp {
        GivenUp { excluded: exclusion.count(), blocks: exclusion.blocks(), block }
    }

    pub(super) fn share(&self) -> f64 {
        self.excluded as f64 / self.blocks.max(1) as f64
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "excluded_blocks": self.excluded,
            "blocks": self.blocks,
            "block_bytes": self.block,
            "excluded_bytes": self.excluded * self.block,
            "excluded_share": self.share(),
        })
    }
}

impl std::fmt::Display for GivenUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let GivenUp { excluded, blocks, block } = *self;
        let (count, of) = (grouped(excluded), grouped(blocks));
        let (space, percent) = (capacity(excluded * block), significant(self.share() * 100.0, 3));
        let block = memory(block);
        write!(f, "{count} of {of} blocks of {block} excluded: {space}, {percent} % of the space")
    }
}
