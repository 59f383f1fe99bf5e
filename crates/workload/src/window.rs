//! The bookkeeping of a closed load: a constant number of requests outstanding, and a total.

use headstack_model::Instant;

use crate::load::Poll;
use crate::shape::{ShapeError, nonzero};

/// Counts the requests of a closed load.
#[derive(Clone, Debug)]
pub struct Window {
    depth: u32,
    out: u32,
    issued: u64,
    requests: u64,
}

impl Window {
    /// At most `depth` requests outstanding, and `requests` in all.
    pub fn new(depth: u32, requests: u64) -> Result<Window, ShapeError> {
        nonzero("the number of outstanding requests", u64::from(depth))?;
        Ok(Window { depth, out: 0, issued: 0, requests })
    }

    /// Whether a request may be issued; else the answer to the poll.
    #[inline]
    pub fn ready(&self) -> Result<(), Poll> {
        if self.issued == self.requests {
            Err(self.ended())
        } else if self.out == self.depth {
            Err(Poll::Waiting)
        } else {
            Ok(())
        }
    }

    /// As [`Window::ready`], for requests that arrive at `due`.
    #[inline]
    pub fn ready_at(&self, now: Instant, due: Instant) -> Result<(), Poll> {
        if self.issued < self.requests && now < due { Err(Poll::Later(due)) } else { self.ready() }
    }

    /// Counts an issued request; returns its number.
    #[inline]
    pub fn next_id(&mut self) -> u64 {
        self.out += 1;
        self.issued += 1;
        self.issued - 1
    }

    /// The number of the next request if one may be issued; else the answer to the poll.
    #[inline]
    pub fn open(&mut self) -> Result<u64, Poll> {
        self.ready().map(|()| self.next_id())
    }

    /// Counts a completion.
    #[inline]
    pub fn close(&mut self) {
        self.out = self.out.checked_sub(1).expect("only what went out comes back");
    }

    /// The answer to the poll when nothing is left to issue.
    pub fn ended(&self) -> Poll {
        if self.out == 0 { Poll::Done } else { Poll::Waiting }
    }
}
