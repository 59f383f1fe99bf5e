//! Many sequential streams, spaced evenly over a region or at a fixed interval.

use std::collections::VecDeque;

use headstack_model::{Instant, Lbn, Op, Request};

use crate::load::{Issue, Load, Poll};
use crate::shape::{Places, nonzero};
use crate::window::Window;
use crate::{Region, ShapeError};

/// The most requests that all streams together have outstanding.
const MOST_OUTSTANDING: u64 = 1 << 24;

/// The shape of a load of sequential streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamShape {
    /// The blocks that the streams divide among them.
    pub region: Region,
    /// How the streams divide the region.
    pub spacing: Spacing,
    /// Number of streams.
    pub streams: u32,
    /// Requests that each has outstanding.
    pub depth: u32,
    /// Blocks a request.
    pub sectors: u32,
    /// Each stream's part begins at a multiple of this block number.
    pub alignment: u32,
    /// Reads or writes.
    pub op: Op,
    /// Maximum number of requests of each stream; unlimited when absent.
    pub each: Option<u64>,
}

impl StreamShape {
    /// Readers that divide the region evenly, one request of each outstanding.
    pub fn reads(region: Region, streams: u32, sectors: u32) -> StreamShape {
        let (spacing, op) = (Spacing::Even, Op::Read);
        StreamShape { region, spacing, streams, depth: 1, sectors, alignment: 1, op, each: None }
    }
}

/// Where streams begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// The region is cut in equal parts, one a stream.
    Even,
    /// This many blocks apart; each stream continues to the region's end, into the parts of the streams after it.
    Interval(u64),
}

/// Sequential streams, each in a part of the region, at whose end it begins again.
///
/// Requests go to device 0. The n-th request of stream s, both counted from 0, has the id n · streams + s.
#[derive(Clone, Debug)]
pub struct Streams {
    window: Window,
    streams: Vec<Stream>,
    ready: VecDeque<u32>,
    sectors: u32,
    op: Op,
    each: u64,
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
        let each = shape.each.unwrap_or(u64::MAX);
        let streams = (0..shape.streams).map(|index| Stream::new(&shape, index)).collect::<Result<_, _>>()?;
        Ok(Streams {
            window: Window::new(found as u32, requests.min(each.saturating_mul(u64::from(shape.streams))))?,
            streams,
            ready: (0..shape.depth).flat_map(|_| 0..shape.streams).collect(),
            sectors: shape.sectors,
            op: shape.op,
            each,
        })
    }
}

impl Stream {
    fn new(shape: &StreamShape, index: u32) -> Result<Stream, ShapeError> {
        let end = shape.region.end()?;
        let index = u64::from(index);
        let region = match shape.spacing {
            Spacing::Even => {
                let part = shape.region.sectors / u64::from(shape.streams);
                Region { first: shape.region.first + part * index, sectors: part }
            }
            Spacing::Interval(interval) => {
                nonzero("the interval of streams", interval)?;
                let first = shape.region.first.0.saturating_add(interval.saturating_mul(index)).min(end);
                Region { first: Lbn(first), sectors: end - first }
            }
        };
        let first = Places::new(region, u64::from(shape.sectors), shape.alignment)?.lbn_at(0).0;
        let end = region.first.0 + region.sectors;
        Ok(Stream { first, end, next: first, issued: 0 })
    }

    #[inline]
    fn next(&mut self, sectors: u32, op: Op) -> Request {
        if self.end - self.next < u64::from(sectors) {
            self.next = self.first;
        }
        let request = Request { op, lbn: Lbn(self.next), sectors, fua: false };
        self.next += u64::from(sectors);
        self.issued += 1;
        request
    }
}

impl Load for Streams {
    fn poll(&mut self, _now: Instant) -> Poll {
        if let Err(poll) = self.window.ready() {
            return poll;
        }
        while let Some(index) = self.ready.pop_front() {
            let count = self.streams.len() as u64;
            let stream = &mut self.streams[index as usize];
            // A stream at its limit is not polled again.
            if stream.issued < self.each {
                self.window.next_id();
                let id = stream.issued * count + u64::from(index);
                let request = stream.next(self.sectors, self.op);
                return Poll::Issue(Issue { source: index, ..Issue::new(0, request, id) });
            }
        }
        Poll::Waiting
    }

    fn handle_completion(&mut self, _now: Instant, id: u64) {
        self.window.close();
        self.ready.push_back((id % self.streams.len() as u64) as u32);
    }
}
