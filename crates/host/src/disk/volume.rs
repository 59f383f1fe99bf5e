//! A volume's bytes: those on the media, and those that its drive still has to put there.

use super::store::Store;
use super::unwritten::Unwritten;
use crate::{BlockError, Stretch};
use headstack_workload::VolumeInfo;

/// A disk that clients see.
#[derive(Debug)]
pub struct Volume {
    info: VolumeInfo,
    store: Store,
    unwritten: Unwritten,
    /// Whether the model tells what is on the media; otherwise all that is written is there at once.
    pub(super) tells_media: bool,
}

impl Volume {
    /// Most stretches in an answer about allocation.
    const STRETCHES: usize = 4096;

    /// A volume whose bytes `store` keeps.
    ///
    /// Panics where the two differ in size.
    pub fn new(info: VolumeInfo, store: Store) -> Volume {
        assert_eq!(info.bytes(), store.bytes(), "the store is made for the volume");
        Volume { info, store, unwritten: Unwritten::default(), tells_media: false }
    }

    /// Its name and size.
    pub fn info(&self) -> &VolumeInfo {
        &self.info
    }

    /// Bytes that are written and not on the media.
    pub fn unwritten_bytes(&self) -> u64 {
        self.unwritten.bytes()
    }

    /// How much room its bytes take on the host; what is in holes takes none.
    pub fn kept_bytes(&self) -> u64 {
        self.store.room() + self.unwritten.bytes()
    }

    /// Reads what is on the media: what is left when the power goes.
    ///
    /// *Errors:* beyond the end of the volume.
    pub fn read_media(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.store.read(offset, into)
    }

    /// Reads what was written last.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), BlockError> {
        self.store.read(offset, into)?;
        self.unwritten.overlay(offset, into);
        Ok(())
    }

    pub(super) fn write(&mut self, offset: u64, data: Vec<u8>) -> Result<(), BlockError> {
        if self.tells_media {
            self.unwritten.insert(offset, data);
            return Ok(());
        }
        self.store.write(offset, &data)
    }

    pub(super) fn trim(&mut self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        self.unwritten.remove(offset, offset + bytes, |_, _| {});
        self.store.clear(offset, bytes)
    }

    /// A run of blocks is on the media now. What the store does not take stays as unwritten as it was.
    pub(super) fn settle(&mut self, start: u64, end: u64) -> Result<(), BlockError> {
        let (store, mut result, mut left) = (&self.store, Ok(()), Vec::new());
        self.unwritten.remove(start, end, |offset, data| {
            if let Err(error) = store.write(offset, data) {
                result = Err(error);
                left.push((offset, data.to_vec()));
            }
        });
        left.into_iter().for_each(|(offset, data)| self.unwritten.insert(offset, data));
        result
    }

    /// Forgets what is not on the media.
    pub(super) fn forget(&mut self) {
        self.unwritten = Unwritten::default();
    }

    pub(super) fn allocation(&self, offset: u64, bytes: u64) -> Vec<Stretch> {
        let stretches = self.store.allocation(offset, bytes, Volume::STRETCHES);
        let mut data = Vec::new();
        let mut at = offset;
        for stretch in stretches {
            if !stretch.hole {
                data.push((at, at + stretch.bytes));
            }
            at += stretch.bytes;
        }
        data.extend(self.unwritten.within(offset, at));
        data.sort_unstable();
        told(offset, at, &data)
    }
}

/// The stretches of `start..end` with these runs of data, which may overlap.
fn told(start: u64, end: u64, data: &[(u64, u64)]) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut add = |bytes: u64, hole: bool| match stretches.last_mut() {
        _ if bytes == 0 => {}
        Some(last) if last.hole == hole => last.bytes += bytes,
        _ => stretches.push(Stretch { bytes, hole }),
    };
    let mut at = start;
    for &(from, to) in data {
        add(from.saturating_sub(at), true);
        add(to.saturating_sub(at.max(from)), false);
        at = at.max(to);
    }
    add(end - at, true);
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> Volume {
        let info = VolumeInfo { name: "sda".to_string(), sectors: 1 << 20, sector_bytes: 512 };
        let store = Store::memory(info.bytes()).expect("unused memory is free");
        Volume { tells_media: true, ..Volume::new(info, store) }
    }

    #[test]
    fn is_what_is_not_on_the_media_read_and_then_forgotten() {
        let mut volume = volume();
        volume.write(0, vec![1; 8192]).expect("there is room");
        volume.settle(0, 4096).expect("there is room");
        let mut read = [0; 8192];
        volume.read(0, &mut read).expect("it is inside");
        assert_eq!(read, [1; 8192]);
        assert_eq!(volume.unwritten_bytes(), 4096);
        volume.forget();
        volume.read(0, &mut read).expect("it is inside");
        assert_eq!((read[4095], read[4096]), (1, 0));
    }

    #[test]
    fn is_what_the_store_does_not_take_still_read() {
        let mut volume = volume();
        volume.store = volume.store.read_only();
        volume.write(512, vec![3; 1024]).expect("the cache has room");
        assert_eq!(volume.settle(0, 8192), Err(BlockError::Medium));
        let mut read = [0; 512];
        volume.read(1024, &mut read).expect("it is inside");
        assert_eq!(read, [3; 512]);
    }

    #[test]
    fn does_allocation_tell_of_data_on_their_way() {
        let mut volume = volume();
        volume.write(4096, vec![1; 4096]).expect("there is room");
        volume.settle(4096, 8192).expect("there is room");
        volume.write(8192, vec![2; 512]).expect("there is room");
        volume.write(1 << 20, vec![2; 512]).expect("there is room");
        let told: Vec<_> = volume.allocation(0, 1 << 21).iter().map(|s| (s.bytes, s.hole)).collect();
        let gap = (1 << 20) - 8704;
        let rest = (1 << 20) - 512;
        assert_eq!(told, [(4096, true), (4608, false), (gap, true), (512, false), (rest, true)]);
        volume.trim(0, 1 << 21).expect("a hole can be made");
        assert_eq!(volume.allocation(0, 1 << 21), [Stretch { bytes: 1 << 21, hole: true }]);
    }
}
