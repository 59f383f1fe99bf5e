//! A disk whose cache loses what was not flushed: after a power cut, each sector has any of the contents that it had since the last flush.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

pub(crate) const SECTOR: usize = 512;

/// A disk in memory.
pub(crate) struct CachedDisk {
    /// What a power cut leaves in any case.
    durable: Vec<u8>,
    /// By sector, what was written since it was flushed, the oldest first.
    cached: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Writes so far.
    pub(crate) writes: u64,
}

impl CachedDisk {
    pub(crate) fn new(bytes: u64) -> CachedDisk {
        CachedDisk { durable: vec![0; bytes as usize], cached: BTreeMap::new(), writes: 0 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.durable.len() as u64
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        let first = offset as usize / SECTOR;
        for (number, part) in into.chunks_mut(SECTOR).enumerate() {
            let sector = first + number;
            let newest = self.cached.get(&sector).and_then(|versions| versions.last());
            let durable = &self.durable[sector * SECTOR..][..SECTOR];
            part.copy_from_slice(newest.map_or(durable, |version| version));
        }
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8], fua: bool) {
        let first = offset as usize / SECTOR;
        self.writes += 1;
        for (number, part) in data.chunks(SECTOR).enumerate() {
            let sector = first + number;
            if fua {
                self.cached.remove(&sector);
                self.durable[sector * SECTOR..][..SECTOR].copy_from_slice(part);
            } else {
                self.cached.entry(sector).or_default().push(part.to_vec());
            }
        }
    }

    pub(crate) fn flush(&mut self) {
        for (sector, versions) in std::mem::take(&mut self.cached) {
            let newest = versions.last().expect("a cached sector was written");
            self.durable[sector * SECTOR..][..SECTOR].copy_from_slice(newest);
        }
    }

    /// Cuts the power: of each cached sector, chance decides which of its contents is on the media.
    pub(crate) fn cut_power(&mut self, random: &mut Pcg64Mcg) {
        for (sector, versions) in std::mem::take(&mut self.cached) {
            // The oldest is the durable one.
            if let Some(kept) = random.random_range(0..=versions.len()).checked_sub(1) {
                self.durable[sector * SECTOR..][..SECTOR].copy_from_slice(&versions[kept]);
            }
        }
    }
}
