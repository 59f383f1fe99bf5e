//! The result of a reorganization, as text and as JSON.

use crate::layout::check::add;
use crate::layout::partition::Mapped;
use crate::layout::show::share_on_track;
use crate::report::Table;
use crate::units::{capacity, count, grouped};
use headstack_host::ext4::online::Unmovable;
use headstack_tracks::crossings::Crossings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The result for one file.
pub(super) struct FileRecord {
    pub(super) path: PathBuf,
    pub(super) before: Crossings,
    pub(super) after: Crossings,
    pub(super) moved_blocks: u64,
    /// The reason why it was not moved, or not entirely.
    pub(super) reason: Option<Unmovable>,
}

impl FileRecord {
    /// A file that was not examined further.
    pub(super) fn unmovable(path: PathBuf, reason: Unmovable) -> FileRecord {
        let none = Crossings::default();
        FileRecord { path, before: none, after: none, moved_blocks: 0, reason: Some(reason) }
    }

    /// Whether it still crosses boundaries although no reason against a move is recorded.
    fn lacks_tracks(&self) -> bool {
        self.reason.is_none() && self.after.crossings > 0
    }
}

/// The result of a run.
pub(super) struct Reorganized<'a> {
    pub(super) mapped: &'a Mapped,
    pub(super) source: String,
    pub(super) records: Vec<FileRecord>,
    /// Hidden files with excluded blocks, below folders.
    pub(super) left_out: Vec<PathBuf>,
    /// Whether nothing was moved.
    pub(super) is_plan: bool,
    pub(super) block_bytes: u64,
}

impl Reorganized<'_> {
    fn sum(&self, part: impl Fn(&FileRecord) -> &Crossings) -> Crossings {
        let mut sum = Crossings::default();
        self.records.iter().for_each(|record| add(&mut sum, part(record)));
        sum
    }

    fn moved(&self) -> (usize, u64) {
        let files = self.records.iter().filter(|record| record.moved_blocks > 0).count();
        let blocks: u64 = self.records.iter().map(|record| record.moved_blocks).sum();
        (files, blocks * self.block_bytes)
    }

    /// Files that were not moved, by their reason.
    fn unmoved(&self) -> BTreeMap<&Unmovable, Vec<&FileRecord>> {
        let mut unmoved: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for record in &self.records {
            if let Some(reason) = &record.reason {
                unmoved.entry(reason).or_default().push(record);
            }
        }
        unmoved
    }

    pub(super) fn to_text(&self) -> String {
        let sector = u64::from(self.mapped.identity.sector_bytes);
        let mut table = Table::new("files", &["", "files", "extents", "size", "crossings", "on a track"]);
        let files = self.records.len();
        let after = if self.is_plan { "planned" } else { "after" };
        for (name, counted) in
            [("before", self.sum(|record| &record.before)), (after, self.sum(|record| &record.after))]
        {
            let Crossings { extents, sectors, crossings, .. } = counted;
            let size = capacity(sectors * sector);
            let row =
                [grouped(files as u64), grouped(extents), size, grouped(crossings), share_on_track(&counted)];
            table.row([vec![name.to_string()], row.to_vec()].concat());
        }
        let (files, bytes) = self.moved();
        let verb = if self.is_plan { "to move" } else { "moved" };
        let mut note = format!("{verb}: {} of {}\n", capacity(bytes), count(files, "file"));
        for (reason, records) in self.unmoved() {
            let first = records[0].path.display();
            let more = if records.len() > 1 { ", …" } else { "" };
            note += &format!("not moved: {} {reason}: {first}{more}\n", count(records.len(), "file"));
        }
        if let lacking @ 1.. = self.records.iter().filter(|record| record.lacks_tracks()).count() {
            note += &format!(
                "still crossing: {}, for lack of free tracks or by --max-bytes\n",
                count(lacking, "file")
            );
        }
        for path in &self.left_out {
            note += &format!("left out: {}, which holds the blocks at boundaries\n", path.display());
        }
        format!("partition  {} ({})\n\n{}{note}", self.mapped.span, self.source, table.to_text())
    }

    pub(super) fn to_json(&self) -> Value {
        let span = self.mapped.span;
        let sector = u64::from(self.mapped.identity.sector_bytes);
        let numbers = |counted: &Crossings| {
            json!({
                "extents": counted.extents,
                "bytes": counted.sectors * sector,
                "crossings": counted.crossings,
                "extents_on_track": counted.on_track,
            })
        };
        let (moved_files, moved_bytes) = self.moved();
        let crossing = self.records.iter().filter(|one| one.before.crossings > 0 || one.reason.is_some());
        let crossing = crossing.map(|record| {
            json!({
                "path": record.path.display().to_string(),
                "before": numbers(&record.before),
                "after": numbers(&record.after),
                "moved_bytes": record.moved_blocks * self.block_bytes,
                "reason": record.reason.as_ref().map(ToString::to_string),
            })
        });
        let left_out = self.left_out.iter().map(|path| path.display().to_string().into());
        json!({
            "partition": { "start": span.start, "sectors": span.sectors, "source": self.source },
            "dry_run": self.is_plan,
            "files": self.records.len(),
            "before": numbers(&self.sum(|record| &record.before)),
            "after": numbers(&self.sum(|record| &record.after)),
            "moved_files": moved_files,
            "moved_bytes": moved_bytes,
            "crossing": crossing.collect::<Vec<_>>(),
            "left_out": left_out.collect::<Vec<Value>>(),
        })
    }
}
