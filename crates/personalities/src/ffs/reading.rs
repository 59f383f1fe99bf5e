//! Reading files: blocks in memory, requested blocks, and read-ahead.

use super::file::File;
use super::read_ahead::Fetch;
use super::session::{Open, Session};
use super::{BLOCK_SECTORS, sector_of};
use headstack_model::Op;
use std::ops::Range;

impl<P> Session<P> {
    /// Returns whether a block is in memory; fetches it if it is not.
    pub(super) fn need(&mut self, block: u32) -> bool {
        if !self.buffers.is_requested(block) {
            self.counts.metadata_reads += 1;
            let first = self.buffers.first_unrequested(block);
            let sectors = BLOCK_SECTORS - first;
            self.buffers.request(sector_of(block) + u64::from(first), sectors);
            self.issue(Op::Read, sector_of(block) + u64::from(first), sectors, true);
        }
        self.buffers.is_valid(block)
    }

    /// Whether the indirect blocks of a block of a file are in memory.
    fn is_found(&mut self, file: &File, index: u32) -> bool {
        File::leads_to(index).iter().all(|kind| self.need(file.leads[File::lead_place(*kind, index)]))
    }

    pub(super) fn fetch(&mut self, open: &mut Open, index: u32) -> bool {
        let Open { file, reader } = open;
        if index as usize >= file.blocks.len() {
            return true;
        }
        if !self.is_found(file, index) {
            return false;
        }
        if let Some(group) = self.layout.group_of(file, index) {
            if !self.buffers.is_requested(file.blocks[index as usize]) {
                self.read_group(group);
            }
            return true;
        }
        let fetch = reader.fetch(&self.layout, &self.history);
        if !self.buffers.is_requested(file.blocks[index as usize]) {
            let demand = if let Fetch::Behind(_) = fetch { Fetch::Blocks(1) } else { fetch };
            self.read(file, index, demand);
            if demand == fetch {
                return true;
            }
        }
        while (reader.asked_to as usize) < file.blocks.len()
            && self.buffers.is_requested(file.blocks[reader.asked_to as usize])
        {
            reader.asked_to += 1;
        }
        let next = reader.asked_to;
        if next as usize >= file.blocks.len() || next - (index + 1) >= self.enough(file, index, fetch) {
            return true;
        }
        if !self.is_found(file, next) {
            return false;
        }
        self.read(file, next, fetch);
        true
    }

    /// Number of blocks after the one that is read that are enough to have fetched: a cluster, or a track if that is more.
    fn enough(&self, file: &File, index: u32, fetch: Fetch) -> u32 {
        if fetch != Fetch::Track {
            return self.layout.cluster_blocks();
        }
        let first = sector_of(file.blocks[index as usize]);
        let tracks = self.layout.tracks();
        let sectors = tracks.end_of(first) - tracks.start_of(first);
        self.layout.cluster_blocks().max((sectors / u64::from(BLOCK_SECTORS)) as u32)
    }

    pub(super) fn wait(&mut self, open: &mut Open, index: u32) -> bool {
        let Some(block) = open.file.blocks.get(index as usize).copied() else { return true };
        if !self.buffers.is_requested(block) {
            self.read(&open.file, index, Fetch::Blocks(1));
        }
        self.buffers.is_valid(block)
    }

    /// Requests blocks of a file from `index` on, whose first was not completely requested: as many as may be fetched, are contiguous, and
    /// were not requested at all.
    fn read(&mut self, file: &File, index: u32, fetch: Fetch) {
        let block = file.blocks[index as usize];
        let first = sector_of(block) + u64::from(self.buffers.first_unrequested(block));
        let ends_with_track = self.layout.variant().ends_with_tracks();
        let track_end = if ends_with_track { self.layout.tracks().end_of(first) } else { u64::MAX };
        let most = match fetch {
            Fetch::Behind(blocks) | Fetch::Blocks(blocks) => blocks,
            Fetch::Track => (track_end - sector_of(block)).div_ceil(u64::from(BLOCK_SECTORS)) as u32,
        };
        let run = file.contiguous(index, index + most);
        let fresh = (1..run).find(|step| self.buffers.first_unrequested(block + step) > 0).unwrap_or(run);
        let end = sector_of(block + fresh).min(track_end);
        self.read_sectors(first..end);
    }

    /// Requests sectors of files, none of which was requested.
    pub(super) fn read_sectors(&mut self, Range { start, end }: Range<u64>) {
        let sectors = (end - start) as u32;
        self.buffers.request(start, sectors);
        self.counts.reads += 1;
        self.counts.read_sectors += u64::from(sectors);
        self.issue(Op::Read, start, sectors, true);
    }

    /// Fetches what is not in memory of the blocks in use of a group of small files.
    pub(super) fn read_group(&mut self, group: u32) {
        let Range { start, end } = self.layout.file_groups().span(group);
        let mut block = start;
        while block < end {
            let requested = self.buffers.first_unrequested(block);
            let is_fresh = |next: &u32| self.buffers.first_unrequested(*next) == 0;
            let fresh = (block + 1..end).find(|next| !is_fresh(next)).unwrap_or(end);
            if requested < BLOCK_SECTORS {
                for piece in self.on_tracks(sector_of(block) + u64::from(requested), sector_of(fresh)) {
                    self.read_sectors(piece);
                }
            }
            block = if requested < BLOCK_SECTORS { fresh } else { block + 1 };
        }
    }

    /// Splits sectors into requests: one on each track if requests end with tracks, else one.
    pub(super) fn on_tracks(&self, first: u64, end: u64) -> Vec<Range<u64>> {
        let ends_with_track = self.layout.variant().ends_with_tracks();
        let mut pieces = Vec::new();
        let mut from = first;
        while from < end {
            let to = if ends_with_track { end.min(self.layout.tracks().end_of(from)) } else { end };
            pieces.push(from..to);
            from = to;
        }
        pieces
    }
}
