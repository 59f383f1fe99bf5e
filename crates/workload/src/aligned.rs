//! Random accesses of one whole track's length, aligned to tracks or not.
//!
//! With a depth of 1 this is the traxtent study's `onereq`, with 2 its `tworeq`: one request more than the drive is working on.
//!
//! *Source:* Schindler, Griffin, Lumb and Ganger 2002, section 5.1.

use headstack_model::{Instant, Lbn, Op, Request, Track};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::Region;
use crate::load::{Issue, Load, Poll};
use crate::shape::{ShapeError, generator};
use crate::window::Window;

/// The shape of a load of track-sized requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackShape {
    /// The blocks in which requests begin.
    pub region: Region,
    /// Whether requests begin at a track boundary. Else they begin at any block, and are as long as the track there.
    pub aligned: bool,
    /// Reads or writes.
    pub op: Op,
    /// Requests outstanding.
    pub depth: u32,
}

impl TrackShape {
    /// One read outstanding: positioning and transfer follow each other.
    pub fn onereq(region: Region, aligned: bool) -> TrackShape {
        TrackShape { region, aligned, op: Op::Read, depth: 1 }
    }

    /// One more read waits in the drive's queue: the next seek starts while the last data cross the bus.
    pub fn tworeq(region: Region, aligned: bool) -> TrackShape {
        TrackShape { depth: 2, ..TrackShape::onereq(region, aligned) }
    }
}

/// Random accesses of a track's length. They go to device 0; their ids count from 0.
#[derive(Clone, Debug)]
pub struct TrackLoad<F> {
    track_of: F,
    shape: TrackShape,
    /// Blocks of the region in which an unaligned request may begin.
    span: u64,
    window: Window,
    random: Pcg64Mcg,
}

impl<F: FnMut(Lbn) -> Track> TrackLoad<F> {
    /// `requests` requests in all; `track_of` gives the track that holds a block.
    ///
    /// *Errors:* the depth is 0, or the region is shorter than its last track.
    pub fn new(shape: TrackShape, requests: u64, seed: u64, mut track_of: F) -> Result<Self, ShapeError> {
        let end = shape.region.end()?;
        let narrow = |sectors| ShapeError::Narrow {
            sectors,
            available: shape.region.sectors,
            first: shape.region.first,
        };
        let last = end.checked_sub(1).filter(|_| shape.region.sectors > 0).ok_or(narrow(1))?;
        let length = u64::from(track_of(Lbn(last)).sectors);
        let span = shape.region.sectors.checked_sub(length).ok_or(narrow(length))? + 1;
        let window = Window::new(shape.depth, requests)?;
        Ok(TrackLoad { track_of, shape, span, window, random: generator(seed) })
    }

    fn next(&mut self) -> Request {
        let (region, op) = (self.shape.region, self.shape.op);
        if self.shape.aligned {
            let lbn = region.first + self.random.random_range(0..region.sectors);
            let track = (self.track_of)(lbn);
            return Request { op, lbn: track.first, sectors: track.sectors, fua: false };
        }
        let lbn = region.first + self.random.random_range(0..self.span);
        // A track near the region's end may be longer than its last one.
        let left = region.first.0 + region.sectors - lbn.0;
        let sectors = u64::from((self.track_of)(lbn).sectors).min(left) as u32;
        Request { op, lbn, sectors, fua: false }
    }
}

impl<F: FnMut(Lbn) -> Track> Load for TrackLoad<F> {
    fn poll(&mut self, _now: Instant) -> Poll {
        match self.window.open() {
            Ok(id) => Poll::Issue(Issue::new(0, self.next(), id)),
            Err(poll) => poll,
        }
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {
        self.window.close();
    }
}
