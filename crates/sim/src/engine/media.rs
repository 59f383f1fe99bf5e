//! What of a volume's data is on its media, and what becomes of it when the power goes.

use super::Engine;
use crate::device::{Fault, FaultError, MediaWrite};
use headstack_model::Nanos;

impl Engine {
    /// Whether it can be told of a volume what is on its media: of a device that is a volume of its own, without a page
    /// cache, a node or a controller's memory before it. Elsewhere data also wait where no record is kept.
    pub fn tells_media(&self, volume: usize) -> bool {
        self.recorded(volume).is_some()
    }

    /// The device of a volume of which it can be told.
    fn recorded(&self, volume: usize) -> Option<usize> {
        let device = self.volumes[volume].root as usize;
        self.devices.get(device).map(|_| device)
    }

    /// Keeps a record of what goes to the media of volumes of which it can be told; to be called before the first run.
    pub fn track_media(&mut self) {
        for device in (0..self.volumes.len()).filter_map(|volume| self.recorded(volume)).collect::<Vec<_>>() {
            self.devices[device].device_mut().track_media();
        }
    }

    /// Blocks of a volume that have gone to its media, in the order in which they did; as [`crate::Device::poll_media_write`].
    /// All that a flush or a forced write promises is told when [`Engine::advance`] comes back that has seen its end.
    pub fn poll_media_write(&mut self, volume: usize) -> Option<MediaWrite> {
        let device = self.recorded(volume)?;
        self.devices[device].device_mut().poll_media_write()
    }

    /// Gives a device's disk a fault; as [`crate::Device::inject`]. How its commands end goes through to the load's requests.
    /// Arrays do not recover from it, and page caches and controllers' memories take what failed as if it had not.
    ///
    /// *Errors:* blocks that the disk does not have, or turns outside 1 to [`Fault::TURNS_MAX`].
    pub fn inject(&mut self, device: usize, fault: Fault) -> Result<(), FaultError> {
        let now = self.now;
        self.with_links(device, |queue, _| {
            queue.device_mut().handle_timeout(now);
            queue.device_mut().inject(fault)
        })?;
        self.settle(device as u32);
        Ok(())
    }

    /// Whether the disk of a volume of which it can be told has died by now ([`Fault::Dead`]). All that went to its media
    /// before is then to be had from [`Engine::poll_media_write`], and what its cache held is lost.
    pub fn has_died(&mut self, volume: usize) -> bool {
        let now = self.now;
        let dead = |device: &usize| self.devices[*device].device().has_died(now);
        let Some(device) = self.recorded(volume).filter(dead) else { return false };
        self.with_links(device, |queue, _| queue.device_mut().handle_timeout(now));
        self.settle(device as u32);
        true
    }

    /// The power of everything goes at `now`, up to which [`Engine::advance`] must have been called: tells what has gone by
    /// of the writes under way, after which nothing happens any more. What is outstanding never comes back.
    pub fn cut_power(&mut self, now: Nanos) {
        assert_eq!(now, self.now, "all that was due before has been seen");
        self.devices.iter_mut().for_each(|queue| queue.device_mut().cut_power(now));
        self.powered_off = true;
    }
}
