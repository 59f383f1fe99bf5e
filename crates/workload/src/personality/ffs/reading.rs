//! Reading files: blocks in memory, requested blocks, and read-ahead.

use super::file::File;
use super::read_ahead::Fetch;
use super::session::{Open, Session};
use super::{BLOCK_SECTORS, sector_of};
use headstack_model::Op;

impl<P> Session<P> {
    /// Whether a block is in memory; it is fetched if it is not.
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
        if !self.is_found(file, index) {
            return false;
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

    /// Number of blocks after the one that is read beyond which no more need be fetched: a cluster, or a track if that is more.
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
        let block = open.file.blocks[index as usize];
        if !self.buffers.is_requested(block) {
            self.read(&open.file, index, Fetch::Blocks(1));
        }
        self.buffers.is_valid(block)
    }

    /// Requests blocks of a file from one on that was not completely requested: as many as may be fetched, are contiguous, and
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
        let sectors = (end - first) as u32;
        self.buffers.request(first, sectors);
        self.counts.reads += 1;
        self.counts.read_sectors += u64::from(sectors);
        self.issue(Op::Read, first, sectors, true);
    }
}
