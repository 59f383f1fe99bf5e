//! The media-write log of volumes, faults and power cuts.

use super::Engine;
use crate::device::{Fault, FaultError, MediaWrite};
use headstack_model::Nanos;

impl Engine {
    /// Whether a volume has a media-write log: it is a single device without a page cache, a node or a controller's memory in
    /// front of it. Elsewhere data also wait in places without such a log.
    pub fn tells_media(&self, volume: usize) -> bool {
        self.recorded(volume).is_some()
    }

    /// The device of a volume with a media-write log.
    fn recorded(&self, volume: usize) -> Option<usize> {
        let device = self.volumes[volume].root as usize;
        self.devices.get(device).map(|_| device)
    }

    /// Enables the media-write logs. Call it before the first run.
    pub fn track_media(&mut self) {
        for device in (0..self.volumes.len()).filter_map(|volume| self.recorded(volume)).collect::<Vec<_>>() {
            self.devices[device].device_mut().track_media();
        }
    }

    /// The next blocks of a volume written to its media, in order; as [`crate::Device::poll_media_write`].
    /// Everything that a flush or a forced write guarantees has been reported when the [`Engine::advance`] that completes it
    /// returns.
    pub fn poll_media_write(&mut self, volume: usize) -> Option<MediaWrite> {
        let device = self.recorded(volume)?;
        self.devices[device].device_mut().poll_media_write()
    }

    /// Injects a fault into a device's disk; as [`crate::Device::inject`]. The outcome of its commands reaches the load's
    /// requests.
    /// Arrays do not recover from it, and page caches and controllers' memories treat failed transfers as successful.
    ///
    /// *Errors:* blocks that the disk does not have, or revolutions outside 1 to [`Fault::TURNS_MAX`].
    pub fn inject(&mut self, device: usize, fault: Fault) -> Result<(), FaultError> {
        let now = self.now;
        self.with_links(device, |queue, _| {
            queue.device_mut().handle_timeout(now);
            queue.device_mut().inject(fault)
        })?;
        self.settle(device as u32);
        Ok(())
    }

    /// Whether the disk of a volume with a media-write log has died by now ([`Fault::Dead`]). Everything written to its media
    /// before is then available from [`Engine::poll_media_write`], and the contents of its cache are lost.
    pub fn has_died(&mut self, volume: usize) -> bool {
        let now = self.now;
        let dead = |device: &usize| self.devices[*device].device().has_died(now);
        let Some(device) = self.recorded(volume).filter(dead) else { return false };
        self.with_links(device, |queue, _| queue.device_mut().handle_timeout(now));
        self.settle(device as u32);
        true
    }

    /// Cuts the power of everything at `now`, up to which [`Engine::advance`] must have been called. It reports the finished parts
    /// of writes in progress; nothing happens after that, and outstanding requests never complete.
    pub fn cut_power(&mut self, now: Nanos) {
        assert_eq!(now, self.now, "all that was due before has been seen");
        self.devices.iter_mut().for_each(|queue| queue.device_mut().cut_power(now));
        self.powered_off = true;
    }
}
