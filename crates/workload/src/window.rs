//! The bookkeeping of a closed load: so many requests out at a time, so many in all.

use headstack_model::Nanos;

use crate::Poll;
use crate::shape::{ShapeError, nonzero};

/// How many requests are out and how many are left.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    depth: u32,
    out: u32,
    issued: u64,
    requests: u64,
}

impl Window {
    /// `requests` requests, `depth` of them at a time.
    pub(crate) fn new(depth: u32, requests: u64) -> Result<Window, ShapeError> {
        nonzero("the number of outstanding requests", u64::from(depth))?;
        Ok(Window { depth, out: 0, issued: 0, requests })
    }

    /// The number of the next request if one may go out; else what to answer.
    #[inline]
    pub(crate) fn open(&mut self) -> Result<u64, Poll> {
        if self.issued == self.requests {
            return Err(self.ended());
        }
        if self.out == self.depth {
            return Err(Poll::Waiting);
        }
        self.out += 1;
        self.issued += 1;
        Ok(self.issued - 1)
    }

    /// As [`Window::open`], for requests that come at `due`.
    #[inline]
    pub(crate) fn open_at(&mut self, now: Nanos, due: Nanos) -> Result<u64, Poll> {
        if self.issued < self.requests && now < due {
            return Err(Poll::Later(due));
        }
        self.open()
    }

    #[inline]
    pub(crate) fn close(&mut self) {
        self.out = self.out.checked_sub(1).expect("only what went out comes back");
    }

    fn ended(&self) -> Poll {
        if self.out == 0 { Poll::Done } else { Poll::Waiting }
    }
}
