//! The search for a track's end, common to the extractors.

use headstack_model::Lbn;

/// Tests whether a block lies on the track.
pub(crate) trait OnTrack {
    type Error;

    /// Whether a block behind the track's first one lies on it.
    async fn is_on(&mut self, lbn: Lbn) -> Result<bool, Self::Error>;
}

/// The block after the last of a track, of which `first` is the first block known to be on it: a multiple of `unit` from it,
/// `limit` at most.
///
/// Likely lengths are tried first, at two probes each; then the search widens from the guess.
pub(crate) async fn track_end<T: OnTrack>(
    track: &mut T,
    first: Lbn,
    limit: Lbn,
    unit: u64,
    guesses: &[u32],
) -> Result<Lbn, T::Error> {
    // `on` is on the track, `off` is not; `limit` was not probed.
    let (mut on, mut off) = (first, limit);
    for guess in guesses {
        let end = (first + u64::from(*guess)).min(limit);
        if end <= on || end > off {
            continue;
        }
        for lbn in [Lbn(end.0 - unit), end] {
            if lbn <= on || lbn >= off {
                continue;
            }
            if track.is_on(lbn).await? { on = lbn } else { off = lbn }
        }
        if on + unit >= off {
            return Ok(off);
        }
    }
    let (mut down, mut up) = (unit, 64 * unit);
    while on + unit < off {
        let half = (off - on) / unit / 2 * unit;
        let lbn = if off < limit { Lbn(off.0 - down.min(half)) } else { on + up.min(half) };
        if track.is_on(lbn).await? { (on, up) = (lbn, up * 2) } else { (off, down) = (lbn, down * 2) }
    }
    Ok(off)
}

/// Likely lengths of the next track, from those before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lengths {
    last: u32,
    before: u32,
    /// Number of consecutive tracks that hold `last`, and that held `before`.
    row: u32,
    row_before: u32,
}

impl Lengths {
    pub(crate) fn push(&mut self, sectors: u32) {
        if sectors == self.last {
            self.row = self.row.saturating_add(1);
        } else {
            (self.before, self.row_before) = (self.last, self.row);
            (self.last, self.row) = (sectors, 1);
        }
    }

    /// The likeliest first. After a single different track, that is the length before it.
    pub(crate) fn guesses(&self) -> Vec<u32> {
        let mut guesses = if self.row_before > 3 && self.row == 1 {
            vec![self.before, self.last]
        } else {
            vec![self.last, self.before]
        };
        guesses.retain(|guess| *guess > 0);
        guesses
    }

    /// Whether the likeliest length was that of the last tracks.
    pub(crate) fn is_steady(&self) -> bool {
        self.row > 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// A track that ends at a block, and the number of tests.
    struct Ends(u64, u32);

    impl OnTrack for Ends {
        type Error = Infallible;

        async fn is_on(&mut self, lbn: Lbn) -> Result<bool, Infallible> {
            self.1 += 1;
            Ok(lbn.0 < self.0)
        }
    }

    fn search(end: u64, limit: u64, unit: u64, guesses: &[u32]) -> (u64, u32) {
        let mut track = Ends(end, 0);
        let found = pin!(track_end(&mut track, Lbn(0), Lbn(limit), unit, guesses))
            .poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Ok(found)) = found else { panic!("it waits for nothing") };
        (found.0, track.1)
    }

    #[test]
    fn track_end_is_found_at_every_position() {
        for (end, limit, unit, guesses) in [
            (334, 10_000, 1, &[334, 333][..]),
            (333, 10_000, 1, &[334, 333]),
            (332, 10_000, 1, &[334]),
            (1, 10_000, 1, &[334]),
            (5_000, 10_000, 1, &[334]),
            (334, 334, 1, &[400]),
            (334, 334, 1, &[334]),
            (335, 400, 1, &[334, 333]),
            (1, 1, 1, &[]),
            (400, 100_000, 8, &[416, 392]),
            (416, 100_000, 8, &[392]),
        ] {
            assert_eq!(search(end, limit, unit, guesses).0, end, "{end} of {limit}");
        }
    }

    #[test]
    fn likely_track_end_takes_two_probes() {
        assert_eq!(search(334, 10_000, 1, &[334]).1, 2);
        assert_eq!(search(333, 10_000, 1, &[334]).1, 2);
        assert!(search(300, 10_000, 1, &[334]).1 <= 12);
    }

    #[test]
    fn repeated_new_length_becomes_first_guess() {
        let mut lengths = Lengths::default();
        assert!(lengths.guesses().is_empty());
        for _ in 0..5 {
            lengths.push(334);
        }
        assert!(lengths.is_steady());
        lengths.push(333);
        assert_eq!((lengths.guesses(), lengths.is_steady()), (vec![334, 333], false));
        lengths.push(333);
        assert_eq!(lengths.guesses(), [333, 334]);
    }
}
