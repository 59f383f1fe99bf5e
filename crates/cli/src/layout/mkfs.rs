//! `headstack layout mkfs`: makes a file system whose data stay within tracks.

use super::exclude::{Which, exclusion};
use super::partition::{MapArgs, Span};
use crate::failure::{self, Failure};
use crate::service::events::Events;
use crate::units::{capacity, grouped, memory, parse_bytes, significant};
use crate::versioned;
use headstack_host::ext4::{self, Ext4Error, HIDDEN_FILE, Made, Place, Plan, Reason};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Make a file system whose data stay within tracks.
#[derive(clap::Subcommand)]
pub(crate) enum Mkfs {
    Ext4(Ext4),
}

impl Mkfs {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Mkfs::Ext4(command) => command.run(out),
        }
    }
}

/// How blocks are left out, as an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MethodArg {
    /// The list of bad blocks of `mke2fs -l`; up to 524,287 blocks of 4 KiB.
    BadBlocks,
    /// An immutable file of length zero that occupies the blocks; any number of them, on disks of any size.
    HiddenFile,
    /// The list if it can hold all blocks and costs no inodes, otherwise the file.
    Auto,
}

impl MethodArg {
    fn chosen(self) -> Option<ext4::ExclusionMethod> {
        match self {
            MethodArg::BadBlocks => Some(ext4::ExclusionMethod::BadBlocks),
            MethodArg::HiddenFile => Some(ext4::ExclusionMethod::HiddenFile),
            MethodArg::Auto => None,
        }
    }
}

/// Make an ext4 that puts nothing on the blocks at track boundaries, so that no extent crosses one.
///
/// The command runs mke2fs, and then e2fsck to check the result. A device or image that it refuses stays
/// unchanged.
#[derive(clap::Args)]
pub(crate) struct Ext4 {
    #[command(flatten)]
    map: MapArgs,
    /// An image of the partition, or its device.
    #[arg(value_name = "IMAGE|DEVICE")]
    target: PathBuf,
    /// Size of a block of the file system: 1024, 2048 or 4096.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "4096")]
    block: u64,
    /// The boundaries at which a block is excluded.
    #[arg(long, value_name = "WHICH", default_value = "every")]
    boundaries: Which,
    /// How blocks are excluded.
    #[arg(long, alias = "road", value_name = "METHOD", default_value = "auto")]
    method: MethodArg,
    /// Make the file system even if the device has a file system or a partition table.
    #[arg(long)]
    force: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Options of mke2fs.
    #[arg(last = true, value_name = "MKE2FS OPTIONS", allow_hyphen_values = true)]
    options: Vec<String>,
}

impl Ext4 {
    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mapped = self.map.read_for(&self.target)?;
        let exclusion = exclusion(&mapped, self.block, self.boundaries)?;
        let place = Place { disk: &mapped.identity, start: mapped.span.start, sectors: mapped.span.sectors };
        ext4::check(&self.target, &place, self.force).map_err(Failure::input)?;
        let events = Events::watch(1, false, false)?;
        let plan = Plan {
            target: &self.target,
            exclusion,
            block_bytes: self.block,
            method: self.method.chosen(),
            options: &self.options,
            tell: &|untried| failure::print_line(&untried.to_string()),
            is_cancelled: &|| events.asked().is_some(),
        };
        let place = self.target.display();
        let made = ext4::make(&plan).map_err(|error| match &error {
            Ext4Error::Spoiled(_) => Failure::Check(format!("{place}: {error}")),
            Ext4Error::Interrupted => Failure::Check(format!("{place}: {error}, and is as it was")),
            _ => Failure::input(error),
        })?;
        if self.json {
            versioned::print(&self.to_json(&mapped.span, &made), out)?
        } else {
            self.print(&mapped.span, &made, out)?
        }
        if let Some(warning) = inodes_lost(&made) {
            failure::print_line(&warning);
        }
        match &made.fault {
            None => Ok(()),
            Some(fault) => {
                let place = self.target.display();
                Err(Failure::Check(format!("{place}: e2fsck -fn finds the file system wrong: {fault}")))
            }
        }
    }

    fn print(&self, span: &Span, made: &Made, out: &mut dyn Write) -> std::io::Result<()> {
        let block = memory(self.block);
        let method = match made.method {
            ext4::ExclusionMethod::BadBlocks => "the list of bad blocks".to_string(),
            ext4::ExclusionMethod::HiddenFile => format!("a file that holds them, /{HIDDEN_FILE}"),
        };
        let reason = reason(made).map(|reason| ("because", reason));
        let excluded = made.excluded();
        let percent = significant(made.share() * 100.0, 3);
        let rows = [
            ("partition", span.to_string()),
            (
                "file system",
                format!("{}, {} blocks of {block}", capacity(made.blocks * self.block), grouped(made.blocks)),
            ),
            ("method", method),
        ];
        let more_rows = [
            ("excluded", format!("{} blocks", grouped(excluded))),
            ("not excluded", format!("{} blocks that hold metadata", grouped(made.metadata))),
            (
                "given up",
                format!(
                    "{}, {percent} % of the space, with {} for the list itself",
                    capacity((excluded + made.list_blocks) * self.block),
                    capacity(made.list_blocks * self.block)
                ),
            ),
            ("inodes", grouped(made.inodes)),
            ("e2fsck -fn", if made.fault.is_none() { "clean" } else { "NOT CLEAN" }.to_string()),
        ];
        let rows = rows.into_iter().chain(reason).chain(more_rows);
        rows.into_iter().try_for_each(|(name, value)| writeln!(out, "  {name:<13} {value}"))
    }

    fn to_json(&self, span: &Span, made: &Made) -> serde_json::Value {
        json!({
            "partition": span,
            "blocks": made.blocks,
            "block_bytes": self.block,
            "method": match made.method { ext4::ExclusionMethod::BadBlocks => "bad-blocks", ext4::ExclusionMethod::HiddenFile => "hidden-file" },
            "method_reason": reason_word(made.reason),
            "listed_blocks": made.listed,
            "excluded_blocks": made.excluded(),
            "metadata_blocks_not_excluded": made.metadata,
            "list_blocks": made.list_blocks,
            "given_up_share": made.share(),
            "inodes": made.inodes,
            "mke2fs_inodes": made.plain_inodes,
            "e2fsck": if made.fault.is_none() { "clean" } else { "not clean" },
        })
    }
}

/// The reason for the hidden file, if `auto` chose it.
fn reason(made: &Made) -> Option<String> {
    match &made.reason {
        Reason::Asked | Reason::ListSuffices => None,
        Reason::ListTooShort { most } => Some(format!("a list of bad blocks holds {}", grouped(*most))),
        Reason::DiskTooLarge => Some("a list of bad blocks is for less than 2^32 blocks".to_string()),
        Reason::ListCostsInodes { table_blocks } => Some(format!(
            "a list of bad blocks would leave fewer inodes: no track holds a group's table of them ({} blocks)",
            grouped(*table_blocks)
        )),
        Reason::ListUntried => {
            Some("whether a list of bad blocks costs inodes cannot be tried: no file is as long".to_string())
        }
    }
}

fn reason_word(reason: Reason) -> &'static str {
    match reason {
        Reason::Asked => "asked",
        Reason::ListSuffices => "list-suffices",
        Reason::ListTooShort { .. } => "list-too-short",
        Reason::DiskTooLarge => "disk-too-large",
        Reason::ListCostsInodes { .. } => "list-costs-inodes",
        Reason::ListUntried => "list-untried",
    }
}

/// A warning if the list of bad blocks costs inodes.
fn inodes_lost(made: &Made) -> Option<String> {
    (made.inodes < made.plain_inodes).then(|| {
        format!(
            "{} inodes, where mke2fs alone gives {}: a group's table of them must fit on a track; --method hidden-file keeps all",
            grouped(made.inodes),
            grouped(made.plain_inodes)
        )
    })
}
