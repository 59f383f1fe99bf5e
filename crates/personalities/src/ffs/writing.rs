//! Writing files: where new blocks go, and when they go to the disk.

use super::file::{File, begins_section, section_end};
use super::file_groups::GroupExtent;
use super::session::{Open, Session, State};
use super::{BLOCK_BYTES, BLOCK_SECTORS, Variant, sector_of};
use headstack_model::Op;

impl<P> Session<P> {
    pub(super) fn grow(&mut self, open: &mut Open, bytes: u64) -> bool {
        let file = &mut open.file;
        file.written = file.written.min(file.bytes / BLOCK_BYTES * u64::from(BLOCK_SECTORS));
        if let Some(last) = file.blocks.last().filter(|_| !file.bytes.is_multiple_of(BLOCK_BYTES)) {
            self.buffers.write(*last);
        }
        file.bytes += bytes;
        self.allocate_block(open, false)
    }

    /// Allocates unwritten data in complete writes, which then go to the disk; the rest as well if the session ends.
    pub(super) fn allocate_block(&mut self, open: &mut Open, ends: bool) -> bool {
        let file = &mut open.file;
        while file.unplaced() > 0 {
            let complete = self.layout.complete(file);
            let is_complete = file.unplaced() >= complete;
            if !is_complete && !ends {
                break;
            }
            let before = file.blocks.len();
            if self.layout.allocate(file, complete.min(file.unplaced())) == 0 {
                self.fill_up(file);
                break;
            }
            for block in &file.blocks[before..] {
                self.buffers.write(*block);
            }
            for lead in &file.leads[file.leads_written..] {
                self.buffers.write(*lead);
            }
            if is_complete {
                self.drain(file, false);
            }
        }
        true
    }

    /// Ends the program because the disk is full.
    fn fill_up(&mut self, file: &mut File) {
        file.bytes = file.blocks.len() as u64 * BLOCK_BYTES;
        self.state = State::Full;
    }

    /// Writes the allocated and complete part of a file; all of it once its delay has passed.
    pub(super) fn drain(&mut self, file: &mut File, all: bool) {
        let waits = file.written < sector_of(file.grouped).min(file.placed_sectors());
        if let Some(group) = file.file_group.filter(|_| all && waits) {
            self.write_group(group, file);
        }
        while let Some((first, sectors)) = self.next_write(file, all) {
            self.counts.writes += 1;
            self.counts.write_sectors += u64::from(sectors);
            self.issue(Op::Write, first, sectors, false);
            let of_block = u64::from(BLOCK_SECTORS);
            let from = file.written / of_block;
            file.written += u64::from(sectors);
            let is_over = file.written == file.placed_sectors();
            let to = if is_over { file.written.div_ceil(of_block) } else { file.written / of_block };
            file.blocks[from as usize..to as usize].iter().for_each(|block| self.buffers.clean(*block));
        }
        self.write_leads(file, all);
    }

    /// The next write of a file, from its first sector that is not on the disk to the end of a cluster or track. `None` if
    /// nothing is left, or, unless all must be written, if the write waits for the rest of its track.
    fn next_write(&self, file: &File, all: bool) -> Option<(u64, u32)> {
        let left = file.placed_sectors().checked_sub(file.written).filter(|left| *left > 0)?;
        let index = (file.written / u64::from(BLOCK_SECTORS)) as u32;
        let first = file.disk_sector(file.written);
        let in_block = file.written - sector_of(index);
        let track_end = self.layout.tracks().end_of(first);
        let ends_with_track = self.layout.variant().ends_with_tracks();
        let to_track_end = (in_block + track_end - first).div_ceil(u64::from(BLOCK_SECTORS)) as u32;
        let most = if ends_with_track { to_track_end } else { self.layout.cluster_blocks() };
        let last = index + file.contiguous(index, index + most);
        let mut end = first + left.min(sector_of(last) - file.written);
        if ends_with_track {
            end = end.min(track_end);
        }
        // The file may continue to the end of the track: then it is written together with the data still to come.
        let continues = last == file.blocks.len() as u32 && last != section_end(index) && end != track_end;
        let waits = self.layout.variant() == Variant::PartialBlocks && continues && !all;
        (!waits).then_some((first, (end - first) as u32))
    }

    /// Writes the indirect blocks that will not change any more.
    fn write_leads(&mut self, file: &mut File, all: bool) {
        let ends = begins_section(file.blocks.len() as u32);
        let final_leads = if all || ends { file.leads.len() } else { file.leads.len().saturating_sub(1) };
        for lead in file.leads.get(file.leads_written..final_leads).unwrap_or_default() {
            self.counts.metadata_writes += 1;
            self.buffers.clean(*lead);
            self.issue(Op::Write, sector_of(*lead), BLOCK_SECTORS, false);
        }
        file.leads_written = file.leads_written.max(final_leads);
    }

    /// Writes the waiting blocks of a group of small files: from the first one to the last, with all blocks between that are in memory
    /// or free. A traxtent of which more than half is in use is written as a whole, because a track or stripe that is written whole needs
    /// neither latency nor old parity.
    pub(super) fn write_group(&mut self, group: u32, file: &mut File) {
        let groups = self.layout.file_groups();
        let extent = groups.extent(group);
        let is_traxtent =
            self.layout.grouping.is_some_and(|grouping| grouping.extent == GroupExtent::Traxtent);
        let pads = is_traxtent && 2 * groups.used(group) > extent.end - extent.start;
        let mut next = extent.clone().find(|block| self.waits_in_group(group, *block));
        while let Some(dirty) = next {
            let joins = |block: &u32| match self.layout.file_groups().is_in_use(group, *block) {
                Some(true) => self.buffers.is_valid(*block),
                free => free.is_some(),
            };
            let end = (dirty..extent.end).find(|block| !joins(block)).unwrap_or(extent.end);
            let start = (extent.start..dirty)
                .rev()
                .find(|block| !joins(block))
                .map_or(extent.start, |block| block + 1);
            let last_dirty =
                (dirty..end).rev().find(|block| self.waits_in_group(group, *block)).unwrap_or(dirty);
            let (first, last) = if pads { (start, end - 1) } else { (dirty, last_dirty) };
            for piece in self.on_tracks(sector_of(first), sector_of(last + 1)) {
                let sectors = piece.end - piece.start;
                self.counts.writes += 1;
                self.counts.write_sectors += sectors;
                self.issue(Op::Write, piece.start, sectors as u32, false);
            }
            (first..=last).for_each(|block| self.buffers.clean(block));
            next = (last + 1..extent.end).find(|block| self.waits_in_group(group, *block));
        }
        mark_group_written(file);
        for owner in self.layout.file_groups().owners(group) {
            self.change(owner, |open| mark_group_written(&mut open.file));
        }
    }

    /// Whether a block of a group waits to be written and belongs to one of its files.
    fn waits_in_group(&self, group: u32, block: u32) -> bool {
        self.layout.file_groups().is_in_use(group, block) == Some(true) && self.buffers.is_dirty(block)
    }
}

fn mark_group_written(file: &mut File) {
    file.written = file.written.max(sector_of(file.grouped).min(file.placed_sectors()));
}
