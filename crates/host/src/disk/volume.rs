//! A volume's bytes: those on the media, and the dirty ones of its drive.

use super::store::Store;
use super::unwritten::{Content, Unwritten};
use crate::{BlockError, StatusExtent};
use headstack_model::Instant;
use headstack_workload::VolumeInfo;

/// A disk as clients see it.
#[derive(Debug)]
pub struct Volume {
    info: VolumeInfo,
    pub(super) store: Store,
    /// Data on the media that the store refused.
    owed: Unwritten,
    unwritten: Unwritten,
    failed: Option<BlockError>,
    is_dead: bool,
    /// Whether the model knows what is on the media; otherwise writes reach the store at once.
    pub(super) tells_media: bool,
}

impl Volume {
    /// Maximum number of extents in a block status answer.
    const MAX_EXTENTS: usize = 4096;

    /// A volume whose bytes `store` keeps.
    ///
    /// Panics if their sizes differ.
    pub fn new(info: VolumeInfo, store: Store) -> Volume {
        assert_eq!(info.bytes(), store.bytes(), "the store is made for the volume");
        Volume {
            info,
            store,
            owed: Unwritten::default(),
            unwritten: Unwritten::default(),
            failed: None,
            is_dead: false,
            tells_media: false,
        }
    }

    /// Its name and size.
    pub fn info(&self) -> &VolumeInfo {
        &self.info
    }

    /// Dirty bytes.
    pub fn unwritten_bytes(&self) -> u64 {
        self.unwritten.bytes()
    }

    /// Space that its bytes take on the host; holes take none.
    pub fn kept_bytes(&self) -> u64 {
        self.store.room() + self.owed.room() + self.unwritten.room()
    }

    /// Reads what is on the media: what remains after a power cut.
    ///
    /// *Errors:* beyond the end of the volume.
    pub fn read_media(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.store.read(offset, into)?;
        self.owed.overlay(offset, into);
        Ok(())
    }

    /// Reads the newest data.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.read_media(offset, into)?;
        self.unwritten.overlay(offset, into);
        Ok(())
    }

    /// Takes bytes at `now`. A dead drive takes none; its model reports that.
    pub(super) fn write(&mut self, now: Instant, offset: u64, content: Content) -> Result<(), BlockError> {
        if self.is_dead {
            return Ok(());
        }
        if self.tells_media {
            self.unwritten.insert(now, offset, content);
            return Ok(());
        }
        self.store.keep(offset, &content)
    }

    pub(super) fn trim(&mut self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        self.unwritten.remove(offset, offset + bytes);
        self.owed.remove(offset, offset + bytes);
        self.store.clear(offset, bytes)
    }

    /// Moves a run of blocks to the store, with the data that the drive had accepted by `submitted`: they are on the media now. Data that
    /// the store refuses are kept in `owed`.
    pub(super) fn settle(&mut self, start: u64, end: u64, submitted: Instant) {
        for run in self.unwritten.settle(start, end, submitted) {
            self.keep(run.first, run.content);
        }
    }

    fn keep(&mut self, first: u64, content: Content) {
        self.owed.remove(first, first + content.bytes());
        if let Err(error) = self.store.keep(first, &content) {
            self.failed = Some(error);
            self.owed.insert(Instant::ZERO, first, content);
        }
    }

    /// Why the store lacks data that are on the media, if it does.
    pub(super) fn failed(&self) -> Option<BlockError> {
        self.failed
    }

    /// Tries again to write what the store refused.
    pub(super) fn try_again(&mut self) -> Result<(), BlockError> {
        if self.failed.take().is_some() {
            for run in self.owed.settle(0, u64::MAX, Instant::MAX) {
                self.keep(run.first, run.content);
            }
        }
        if let Some(error) = self.failed { Err(error) } else { Ok(()) }
    }

    /// Changes a bit of each block on the media.
    ///
    /// *Errors:* beyond the end of the volume; no space is left.
    pub(super) fn corrupt_media(&mut self, first: u64, blocks: u64, block: u64) -> Result<(), BlockError> {
        for offset in (first..first + blocks * block).step_by(block as usize) {
            let mut data = vec![0; block as usize];
            self.read_media(offset, &mut data)?;
            data[0] ^= 1;
            self.keep(offset, Content::Data(data));
        }
        Ok(())
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead
    }

    /// Marks the drive dead and drops its dirty data.
    pub(super) fn die(&mut self) {
        self.is_dead = true;
        self.forget();
    }

    pub(super) fn forget(&mut self) {
        self.unwritten = Unwritten::default();
    }

    /// Replaces the store by a read-only one, and returns the old one.
    #[cfg(test)]
    pub(super) fn be_read_only(&mut self) -> Store {
        let refusing = self.store.read_only();
        std::mem::replace(&mut self.store, refusing)
    }

    #[cfg(test)]
    pub(super) fn take_store(&mut self, store: Store) {
        self.store = store;
    }

    pub(super) fn allocation(&self, offset: u64, bytes: u64) -> Vec<StatusExtent> {
        let extents = self.store.allocation(offset, bytes, Volume::MAX_EXTENTS);
        let mut data = Vec::new();
        let mut at = offset;
        for extent in extents {
            if !extent.hole {
                data.push((at, at + extent.bytes));
            }
            at += extent.bytes;
        }
        data.extend(self.owed.within(offset, at).chain(self.unwritten.within(offset, at)));
        data.sort_unstable();
        reported(offset, at, &data)
    }
}

/// The extents of `start..end` with these runs of data, which may overlap.
fn reported(start: u64, end: u64, data: &[(u64, u64)]) -> Vec<StatusExtent> {
    let mut extents: Vec<StatusExtent> = Vec::new();
    let mut add = |bytes: u64, hole: bool| match extents.last_mut() {
        _ if bytes == 0 => {}
        Some(last) if last.hole == hole => last.bytes += bytes,
        _ => extents.push(StatusExtent { bytes, hole }),
    };
    let mut at = start;
    for &(from, to) in data {
        add(from.saturating_sub(at), true);
        add(to.saturating_sub(at.max(from)), false);
        at = at.max(to);
    }
    add(end - at, true);
    extents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> Volume {
        let info = VolumeInfo { name: "sda".to_string(), sectors: 1 << 20, sector_bytes: 512, zones: None };
        let store = Store::memory(info.bytes()).expect("unused memory is free");
        Volume { tells_media: true, ..Volume::new(info, store) }
    }

    fn data(byte: u8, bytes: usize) -> Content {
        Content::Data(vec![byte; bytes])
    }

    fn byte(volume: &Volume, offset: u64) -> u8 {
        let mut read = [0];
        volume.read(offset, &mut read).expect("it is inside");
        read[0]
    }

    fn on_media(volume: &Volume, offset: u64) -> u8 {
        let mut read = [0];
        volume.read_media(offset, &mut read).expect("it is inside");
        read[0]
    }

    #[test]
    fn unwritten_data_is_readable_until_forgotten() {
        let mut volume = volume();
        volume.write(Instant(1), 0, data(1, 8192)).expect("there is room");
        volume.settle(0, 4096, Instant(1));
        assert_eq!((byte(&volume, 4095), byte(&volume, 4096)), (1, 1));
        assert_eq!(volume.unwritten_bytes(), 4096);
        volume.forget();
        assert_eq!((byte(&volume, 4095), byte(&volume, 4096)), (1, 0));
    }

    #[test]
    fn write_during_an_access_stays_off_the_media() {
        let mut volume = volume();
        volume.write(Instant(1), 0, data(1, 4096)).expect("there is room");
        volume.write(Instant(5), 512, data(2, 512)).expect("there is room");
        volume.settle(0, 4096, Instant(1));
        assert_eq!((on_media(&volume, 0), on_media(&volume, 512), byte(&volume, 512)), (1, 1, 2));
        assert_eq!(volume.unwritten_bytes(), 512);
        volume.settle(0, 4096, Instant(5));
        assert_eq!((on_media(&volume, 512), volume.unwritten_bytes()), (2, 0));
    }

    #[test]
    fn data_rejected_by_the_store_is_readable_and_retried() {
        let mut volume = volume();
        let good = volume.be_read_only();
        volume.write(Instant(1), 512, data(3, 1024)).expect("the cache has room");
        volume.settle(0, 8192, Instant(1));
        assert_eq!((volume.failed(), volume.unwritten_bytes()), (Some(BlockError::Medium), 0));
        assert_eq!(volume.try_again(), Err(BlockError::Medium));
        volume.write(Instant(2), 512, data(4, 512)).expect("the cache has room");
        assert_eq!((byte(&volume, 512), on_media(&volume, 512), byte(&volume, 1024)), (4, 3, 3));
        volume.take_store(good);
        assert_eq!(volume.try_again(), Ok(()));
        assert_eq!((volume.failed(), on_media(&volume, 1024), volume.owed.bytes()), (None, 3, 0));
    }

    #[test]
    fn zeros_without_trim_are_stored_as_data() {
        let mut volume = volume();
        for (number, may_trim) in [true, false].into_iter().enumerate() {
            let (now, place) = (Instant(number as u64), number as u64 * 65_536);
            volume.write(now, place, data(1, 65_536)).expect("there is room");
            volume.write(now, place, Content::Zeros { bytes: 65_536, may_trim }).expect("there is room");
            volume.settle(place, place + 65_536, now);
        }
        let extent = |hole| StatusExtent { bytes: 65_536, hole };
        assert_eq!(volume.allocation(0, 131_072), [extent(true), extent(false)]);
        assert_eq!((byte(&volume, 0), byte(&volume, 65_536)), (0, 0));
    }

    #[test]
    fn dead_drive_stores_nothing_and_loses_its_cache() {
        let mut volume = volume();
        volume.write(Instant(1), 0, data(1, 512)).expect("the cache has room");
        volume.die();
        volume.write(Instant(2), 0, data(2, 512)).expect("its model tells of it");
        volume.settle(0, u64::MAX, Instant::MAX);
        assert_eq!((volume.unwritten_bytes(), on_media(&volume, 0)), (0, 0));
    }

    #[test]
    fn allocation_includes_unwritten_data() {
        let mut volume = volume();
        volume.write(Instant(1), 4096, data(1, 4096)).expect("there is room");
        volume.settle(4096, 8192, Instant(1));
        volume.write(Instant(1), 8192, data(2, 512)).expect("there is room");
        volume.write(Instant(1), 1 << 20, data(2, 512)).expect("there is room");
        let reported: Vec<_> = volume.allocation(0, 1 << 21).iter().map(|s| (s.bytes, s.hole)).collect();
        let gap = (1 << 20) - 8704;
        let rest = (1 << 20) - 512;
        assert_eq!(reported, [(4096, true), (4608, false), (gap, true), (512, false), (rest, true)]);
        volume.trim(0, 1 << 21).expect("a hole can be made");
        assert_eq!(volume.allocation(0, 1 << 21), [StatusExtent { bytes: 1 << 21, hole: true }]);
    }
}
