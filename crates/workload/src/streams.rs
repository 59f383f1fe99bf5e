//! Many sequential readers, spaced evenly over a region.

use std::collections::VecDeque;

use headstack_model::{Lbn, Nanos, Request};

use crate::shape::{Places, nonzero};
use crate::window::Window;
use crate::{Issue, Load, Poll, Region, ShapeError};

/// The most requests that all streams together have outstanding.
const MOST_OUTSTANDING: u64 = 1 << 24;

/// What a load of sequential streams looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamShape {
    /// The blocks that the streams share out among them in equal parts.
    pub region: Region,
    /// Number of streams.
    pub streams: u32,
    /// Requests that each has outstanding.
    pub depth: u32,
    /// Blocks a request.
    pub sectors: u32,
    /// Each stream's part begins at a multiple of this block number.
    pub alignment: u32,
}

/// Sequential readers, each in a part of the region of its own, at whose end it begins again.
///
/// Requests go to device 0. The n-th request of stream s, both counted from 0, has the id n · streams + s.
#[derive(Clone, Debug)]
pub struct Streams {
    window: Window,
    streams: Vec<Stream>,
    /// Streams that may issue, in order of their turn.
    ready: VecDeque<u32>,
    sectors: u32,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    first: u64,
    end: u64,
    next: u64,
    issued: u64,
}

impl Streams {
    /// `requests` requests in all.
    ///
    /// *Errors:* one of the numbers is 0, or a stream's part is shorter than a request.
    pub fn new(shape: StreamShape, requests: u64) -> Result<Streams, ShapeError> {
        nonzero("the number of streams", u64::from(shape.streams))?;
        let found = u64::from(shape.depth) * u64::from(shape.streams);
        if found > MOST_OUTSTANDING {
            return Err(ShapeError::Outstanding { found, most: MOST_OUTSTANDING });
        }
        let streams = (0..shape.streams).map(|index| Stream::new(&shape, index)).collect::<Result<_, _>>()?;
        Ok(Streams {
            window: Window::new(found as u32, requests)?,
            streams,
            ready: (0..shape.depth).flat_map(|_| 0..shape.streams).collect(),
            sectors: shape.sectors,
        })
    }
}

impl Stream {
    fn new(shape: &StreamShape, index: u32) -> Result<Stream, ShapeError> {
        shape.region.end()?;
        let part = shape.region.sectors / u64::from(shape.streams);
        let region = Region { first: shape.region.first + part * u64::from(index), sectors: part };
        let first = Places::new(region, shape.sectors, shape.alignment)?.at(0).0;
        Ok(Stream { first, end: region.first.0 + part, next: first, issued: 0 })
    }

    #[inline]
    fn next(&mut self, sectors: u32) -> Request {
        if self.end - self.next < u64::from(sectors) {
            self.next = self.first;
        }
        let request = Request::read(Lbn(self.next), sectors);
        self.next += u64::from(sectors);
        self.issued += 1;
        request
    }
}

impl Load for Streams {
    fn poll(&mut self, _now: Nanos) -> Poll {
        if let Err(poll) = self.window.open() {
            return poll;
        }
        let index = self.ready.pop_front().expect("as many streams are ready as requests may go out");
        let count = self.streams.len() as u64;
        let stream = &mut self.streams[index as usize];
        let id = stream.issued * count + u64::from(index);
        Poll::Issue(Issue { source: index, ..Issue::new(0, stream.next(self.sectors), id) })
    }

    fn handle_completion(&mut self, _now: Nanos, id: u64) {
        self.window.close();
        self.ready.push_back((id % self.streams.len() as u64) as u32);
    }
}
