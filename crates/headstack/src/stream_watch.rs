//! Whether the requests to a volume form one sequential stream, and the rate of the media below it.

use headstack_model::{Lbn, Op, Request};
use headstack_sim::Device;

/// Fewest requests of which a stream is recognized.
const REQUESTS_MIN: u64 = 100;

/// Share of the requests of a stream that continue the one before.
const CONTINUED_MIN: f64 = 0.95;

/// Counts the reads and writes that continue the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamWatch {
    /// The block after the last request.
    end: u64,
    /// The block after the highest one.
    highest: u64,
    requests: u64,
    continued: u64,
    synced: u64,
}

impl StreamWatch {
    #[inline]
    pub(crate) fn observe(&mut self, request: &Request) {
        if request.op == Op::Flush {
            self.synced += 1;
            return;
        }
        let Lbn(end) = request.end();
        self.continued += u64::from(request.lbn.0 == self.end);
        self.synced += u64::from(request.fua);
        (self.end, self.highest) = (end, self.highest.max(end));
        self.requests += 1;
    }

    /// The stream on a volume, if its requests are one, whose first device (the only one, unless it is an array) is this.
    pub(crate) fn stream(&self, first: &Device, is_array: bool) -> Option<StreamResult> {
        let is_stream =
            self.requests >= REQUESTS_MIN && self.continued as f64 >= CONTINUED_MIN * self.requests as f64;
        // The blocks of an array lie anywhere on its devices: the slowest track bounds the rate from below.
        let last = if is_array { first.sectors() } else { self.highest.min(first.sectors()) };
        is_stream.then(|| StreamResult {
            media_mb_s: media_mb_s(first, Lbn(last.saturating_sub(1))),
            is_synced: self.synced > 0,
        })
    }
}

/// A volume whose requests form one sequential stream.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct StreamResult {
    /// MB (10⁶ bytes) that pass under a head in a second, at the stream's highest block; of an array, at the slowest of its first device.
    pub media_mb_s: f64,
    /// Whether the load made writes durable on the way, by FLUSH or FUA.
    pub is_synced: bool,
}

/// MB (10⁶ bytes) of a track that pass under a head in a second.
fn media_mb_s(device: &Device, lbn: Lbn) -> f64 {
    let drive = device.drive();
    let track = u64::from(drive.geometry.extent_at(lbn).sectors_per_track) * u64::from(device.sector_bytes());
    track as f64 / 1e6 / drive.mechanics.spindle().period().as_secs()
}
