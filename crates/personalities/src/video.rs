//! A video server: rounds in which each stream gets one request.
//!
//! Modelled: all requests of a round arrive when it begins, uniformly distributed over the tracks that the server uses (blocks of
//! videos are spread at random, so that no two streams request neighbours). They are issued sorted by block, upwards in one round
//! and downwards in the next, `depth` at a time; the next round begins when the last is over. Each track is a request of its own,
//! because a drive with access on arrival serves a request over several tracks in order; or requests begin at any block. Not
//! modelled: the streams' clients, other disks, writing.
//!
//! *Source:* J. R. Santos and R. Muntz, "Performance analysis of the RIO multimedia storage system with heterogeneous disk
//! configurations" (1998), for places at random; Schindler, Griffin, Lumb and Ganger 2002, section 5.3, for rounds of requests of
//! a track's length.

use headstack_model::{Instant, Lbn, Nanos, Request};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use headstack_workload::Window;
use headstack_workload::{Issue, Load, Poll};
use headstack_workload::{ShapeError, generator, nonzero};

/// The data of a stream in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// This number of consecutive whole tracks, one request each.
    Tracks(u32),
    /// This number of blocks, from any block on, in one request.
    Blocks(u32),
}

/// The shape of a server's rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Streams that are served in a round.
    pub streams: u32,
    /// The data of each stream.
    pub chunk: Chunk,
    /// Requests of a round outstanding at the disk.
    pub depth: u32,
    /// Rounds in all.
    pub rounds: u32,
}

impl Rounds {
    /// The requests of a round.
    pub fn requests(&self) -> u64 {
        let each = match self.chunk {
            Chunk::Tracks(tracks) => tracks,
            Chunk::Blocks(_) => 1,
        };
        u64::from(self.streams) * u64::from(each)
    }

    fn window(&self) -> Result<Window, ShapeError> {
        Window::new(self.depth, self.requests())
    }
}

/// A video server's reads of one disk, device 0.
#[derive(Clone, Debug)]
pub struct VideoServer<'a> {
    /// Where tracks begin, and where the last one ends.
    boundaries: &'a [Lbn],
    shape: Rounds,
    random: Pcg64Mcg,
    /// Where the streams' chunks of the round begin: numbers of tracks or blocks, sorted.
    chunks: Vec<u64>,
    /// The requests of the round, in the order in which they are issued.
    round: Vec<Request>,
    window: Window,
    begun: Instant,
    took: Vec<Nanos>,
}

impl<'a> VideoServer<'a> {
    /// A server whose videos are on the tracks between these boundaries: rising, the last of them the end of the last track.
    ///
    /// *Errors:* no streams, an empty chunk, a depth of 0, or a chunk that the tracks do not hold.
    pub fn new(boundaries: &'a [Lbn], shape: Rounds, seed: u64) -> Result<VideoServer<'a>, ShapeError> {
        assert!(boundaries.is_sorted_by(|one, next| one < next), "the boundaries of a track map rise");
        let first = boundaries.first().copied().unwrap_or_default();
        let sectors = boundaries.last().copied().unwrap_or_default() - first;
        let (what, length, available) = match shape.chunk {
            Chunk::Tracks(tracks) => {
                ("the tracks of a request", tracks, boundaries.len().saturating_sub(1) as u64)
            }
            Chunk::Blocks(blocks) => ("the blocks of a request", blocks, sectors),
        };
        nonzero("the number of streams", shape.streams.into())?;
        nonzero(what, length.into())?;
        if u64::from(length) > available {
            return Err(ShapeError::Narrow { sectors: length.into(), available, first });
        }
        let window = shape.window()?;
        let took = Vec::with_capacity(shape.rounds as usize);
        let (chunks, round, random) = (Vec::new(), Vec::new(), generator(seed));
        let begun = Instant::ZERO;
        let mut server = VideoServer { boundaries, shape, random, chunks, round, window, begun, took };
        server.draw();
        Ok(server)
    }

    /// Duration of each completed round, from its first request to its last byte.
    pub fn rounds(&self) -> &[Nanos] {
        &self.took
    }

    fn draw(&mut self) {
        let VideoServer { boundaries, shape, random, chunks, round, .. } = self;
        let places = match shape.chunk {
            Chunk::Tracks(tracks) => 0..(boundaries.len() - tracks as usize) as u64,
            Chunk::Blocks(sectors) => {
                boundaries[0].0..boundaries[boundaries.len() - 1].0 - u64::from(sectors) + 1
            }
        };
        chunks.clear();
        chunks.extend((0..shape.streams).map(|_| random.random_range(places.clone())));
        chunks.sort_unstable();
        if self.took.len() % 2 == 1 {
            chunks.reverse();
        }
        round.clear();
        for chunk in chunks {
            match shape.chunk {
                Chunk::Tracks(tracks) => {
                    let first = *chunk as usize;
                    round.extend(boundaries[first..=first + tracks as usize].windows(2).map(read));
                }
                Chunk::Blocks(sectors) => round.push(Request::read(Lbn(*chunk), sectors)),
            }
        }
    }
}

fn read(track: &[Lbn]) -> Request {
    let sectors = u32::try_from(track[1] - track[0]).expect("a track is below 2 TiB");
    Request::read(track[0], sectors)
}

impl Load for VideoServer<'_> {
    fn poll(&mut self, _now: Instant) -> Poll {
        if self.took.len() == self.shape.rounds as usize {
            return Poll::Done;
        }
        match self.window.open() {
            Ok(id) => Poll::Issue(Issue::new(0, self.round[id as usize], id)),
            Err(_) => Poll::Waiting,
        }
    }

    fn handle_completion(&mut self, now: Instant, _id: u64) {
        self.window.close();
        if self.window.ready() != Err(Poll::Done) {
            return;
        }
        self.took.push(now - self.begun);
        self.begun = now;
        self.window = self.shape.window().expect("it was made before");
        self.draw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boundaries() -> Vec<Lbn> {
        (0..=50).map(|track| Lbn(1000 + 100 * track - track / 7)).collect()
    }

    /// Plays all rounds, a request a millisecond; the rounds' requests.
    fn play(server: &mut VideoServer<'_>) -> Vec<Vec<Request>> {
        let (mut now, mut out, mut rounds) = (Instant::ZERO, Vec::new(), vec![Vec::new()]);
        loop {
            match server.poll(now) {
                Poll::Issue(issue) => {
                    assert!(out.len() < 2, "no more go out than may");
                    out.push(issue.id);
                    rounds.last_mut().expect("there is one").push(issue.request);
                }
                Poll::Waiting => {
                    now += Nanos::from_ms(1.0);
                    let before = server.rounds().len();
                    server.handle_completion(now, out.remove(0));
                    if server.rounds().len() > before {
                        rounds.push(Vec::new());
                    }
                }
                Poll::Done => {
                    assert!(rounds.pop().is_some_and(|round| round.is_empty()));
                    return rounds;
                }
                Poll::Later(_) | Poll::Compute { .. } => panic!("a round begins when the last is over"),
            }
        }
    }

    #[test]
    fn every_stream_gets_its_chunk_in_alternating_sweeps() {
        let boundaries = boundaries();
        for chunk in [Chunk::Tracks(1), Chunk::Tracks(3), Chunk::Blocks(130)] {
            let shape = Rounds { streams: 9, chunk, depth: 2, rounds: 20 };
            let mut server = VideoServer::new(&boundaries, shape, 1).expect("it is a good shape");
            let rounds = play(&mut server);
            assert_eq!(rounds.len(), 20);
            let (each, is_tracks) = match chunk {
                Chunk::Tracks(tracks) => (tracks as usize, true),
                Chunk::Blocks(_) => (1, false),
            };
            assert!(server.rounds().iter().all(|took| took.0 == 9_000_000 * each as u64));
            for (number, round) in rounds.iter().enumerate() {
                assert_eq!(round.len(), 9 * each);
                let chunks = || round.chunks(each).map(|chunk| chunk[0].lbn);
                assert!(if number % 2 == 0 { chunks().is_sorted() } else { chunks().rev().is_sorted() });
                for chunk in round.chunks(each) {
                    assert!(chunk.windows(2).all(|pair| pair[0].end() == pair[1].lbn));
                    assert!(chunk[0].lbn >= boundaries[0] && chunk[each - 1].end() <= boundaries[50]);
                    let is_track = |request: &Request| {
                        let begins = boundaries.binary_search(&request.lbn);
                        begins.is_ok_and(|first| boundaries[first + 1] == request.end())
                    };
                    assert!(chunk.iter().all(|request| if is_tracks {
                        is_track(request)
                    } else {
                        request.sectors == 130
                    }));
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "rise")]
    fn empty_track_is_rejected() {
        let shape = Rounds { streams: 1, chunk: Chunk::Tracks(1), depth: 1, rounds: 1 };
        let _ = VideoServer::new(&[0, 100, 100, 200].map(Lbn), shape, 1);
    }

    #[test]
    fn server_of_empty_or_oversized_requests_is_rejected() {
        let boundaries = boundaries();
        let good = Rounds { streams: 9, chunk: Chunk::Tracks(1), depth: 2, rounds: 20 };
        assert!(VideoServer::new(&boundaries, Rounds { chunk: Chunk::Tracks(50), ..good }, 1).is_ok());
        for wrong in [
            Rounds { streams: 0, ..good },
            Rounds { depth: 0, ..good },
            Rounds { chunk: Chunk::Tracks(0), ..good },
            Rounds { chunk: Chunk::Tracks(51), ..good },
            Rounds { chunk: Chunk::Blocks(0), ..good },
            Rounds { chunk: Chunk::Blocks(6000), ..good },
        ] {
            assert!(VideoServer::new(&boundaries, wrong, 1).is_err(), "{wrong:?}");
        }
        assert!(VideoServer::new(&[], good, 1).is_err());
        assert!(VideoServer::new(&boundaries[..1], good, 1).is_err());
    }
}
