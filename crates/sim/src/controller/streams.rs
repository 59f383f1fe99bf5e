//! Streams that a controller detects in the reads of its drives: a read that begins where another one ended continues its stream.

use headstack_model::{Lbn, Request};
use std::ops::Range;

/// The largest number of streams; a further one replaces the one silent for longest.
const STREAMS: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Stream {
    drive: u32,
    next: Lbn,
    ahead: Lbn,
    used: u64,
}

#[derive(Debug, Default)]
pub(super) struct Streams {
    streams: Vec<Stream>,
    reads: u64,
}

impl Streams {
    /// Records a read of a drive; `missed`: some of its data were missing. If it continues a stream whose read-ahead is not far ahead of the
    /// reader, returns the stream's number and the run to read ahead, up to `most` after the read.
    pub(super) fn read(
        &mut self,
        drive: u32,
        request: &Request,
        missed: bool,
        most: u64,
    ) -> Option<(usize, Range<Lbn>)> {
        self.reads += 1;
        let end = request.end();
        let found = self.streams.iter().position(|s| s.drive == drive && s.next == request.lbn);
        let Some(number) = found else {
            self.begin(Stream { drive, next: end, ahead: end, used: self.reads });
            return None;
        };
        let stream = &mut self.streams[number];
        (stream.next, stream.used) = (end, self.reads);
        // Read-ahead data that have been evicted since are read again.
        stream.ahead = if missed { end } else { stream.ahead.max(end) };
        let run = stream.ahead..end + most;
        (stream.ahead - end <= most / 2).then_some((number, run))
    }

    /// Records up to where a stream has actually been read ahead.
    pub(super) fn set_ahead(&mut self, number: usize, ahead: Lbn) {
        self.streams[number].ahead = ahead;
    }

    fn begin(&mut self, stream: Stream) {
        if self.streams.len() < STREAMS {
            return self.streams.push(stream);
        }
        let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used);
        *oldest.expect("there are many") = stream;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_read_of_a_stream_starts_read_ahead() {
        let mut streams = Streams::default();
        let mut read = |lbn: u64, missed: bool| {
            let found = streams.read(0, &Request::read(Lbn(lbn), 8), missed, 64)?;
            streams.set_ahead(found.0, found.1.end);
            Some((found.1.start.0, found.1.end.0))
        };
        assert_eq!(read(0, true), None);
        assert_eq!(read(1000, true), None, "another one");
        assert_eq!(read(8, true), Some((16, 80)));
        assert_eq!(read(1008, true), Some((1016, 1080)));
        assert_eq!((read(16, false), read(24, false), read(32, false)), (None, None, None));
        assert_eq!(read(40, false), Some((80, 112)), "half of it is used up");
        assert_eq!(read(48, true), Some((56, 120)), "what was there has gone");
        assert_eq!(read(500, false), None);
    }
}
