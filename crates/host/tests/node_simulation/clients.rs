//! The drawn clients: readers and writers that proceed forward, nearly forward, in strides, backward or at random, with several requests
//! outstanding and pauses between them.

use crate::expected_data::BLOCK;
use headstack_model::{Instant, Nanos};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Which way a client goes through its area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walk {
    Forward,
    /// Forward, with occasional skips ahead or back.
    Nearly,
    Strided(u64),
    Backward,
    Anywhere,
}

/// A client's access, in blocks of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    Read {
        first: u64,
        blocks: u64,
        forced: bool,
    },
    Write {
        first: u64,
        blocks: u64,
        forced: bool,
    },
    Zeroes {
        first: u64,
        blocks: u64,
        may_trim: bool,
        forced: bool,
    },
    Trim {
        first: u64,
        blocks: u64,
    },
    Prefetch {
        first: u64,
        blocks: u64,
    },
    BlockStatus {
        first: u64,
        blocks: u64,
    },
    Flush,
    /// Requests that no disk executes: beyond its end, or not in whole blocks.
    Nonsense(u32),
}

/// One of a simulation's clients.
#[derive(Debug)]
pub(crate) struct Client {
    /// The id by which the node knows it; a client that returns has another.
    pub(crate) number: u64,
    /// Requests that it waits for.
    pub(crate) waits: u32,
    /// When it issues its next request, if its queue depth allows.
    pub(crate) ready: Instant,
    /// Requests that it has yet to issue.
    pub(crate) left: u32,
    area: (u64, u64),
    walk: Walk,
    next: u64,
    blocks: u64,
    depth: u32,
    pause: Nanos,
    write_share: f64,
    odd_share: f64,
}

impl Client {
    /// Draws a client of some area.
    pub(crate) fn draw(random: &mut Pcg64Mcg, number: u64, area: (u64, u64)) -> Client {
        let blocks = 1 << random.random_range(0..=6);
        let walk = match random.random_range(0..10) {
            0..=3 => Walk::Forward,
            4..=5 => Walk::Nearly,
            6 => Walk::Strided(blocks * random.random_range(2..=4)),
            7 => Walk::Backward,
            _ => Walk::Anywhere,
        };
        let write_share = [0.0, 0.0, 1.0, 0.3][random.random_range(0..4)];
        let pause =
            [Nanos::ZERO, Nanos::ZERO, Nanos::from_ms(3.0), Nanos::from_ms(400.0)][random.random_range(0..4)];
        Client {
            number,
            waits: 0,
            ready: Instant(random.random_range(0..20_000_000)),
            left: random.random_range(4..=48),
            area,
            walk,
            next: if walk == Walk::Backward { area.1 } else { random.random_range(0..area.1 / 2) },
            blocks,
            depth: [1, 1, 2, 8][random.random_range(0..4)],
            pause,
            write_share,
            odd_share: [0.0, 0.1, 0.3][random.random_range(0..3)],
        }
    }

    /// Whether it issues a request now.
    pub(crate) fn asks(&self, now: Instant) -> bool {
        self.is_ready() && self.ready <= now
    }

    /// Whether it issues a request when it is due, even if none of its outstanding ones completes.
    pub(crate) fn is_ready(&self) -> bool {
        self.left > 0 && self.waits < self.depth
    }

    /// Its next request.
    pub(crate) fn want(&mut self, random: &mut Pcg64Mcg, now: Instant) -> Want {
        self.left -= 1;
        self.waits += 1;
        if self.pause > Nanos::ZERO {
            self.ready = now + Nanos(random.random_range(0..self.pause.0));
        }
        let (first, blocks) = self.place(random);
        let forced = random.random_bool(0.05);
        if random.random_bool(self.odd_share) {
            let may_trim = random.random_bool(0.5);
            return match random.random_range(0..12) {
                0..=4 => Want::Flush,
                5 => Want::Zeroes { first, blocks, may_trim, forced },
                6 => Want::Trim { first, blocks },
                7 => Want::Prefetch { first, blocks },
                8 => Want::BlockStatus { first, blocks },
                9 => Want::Nonsense(random.random()),
                10 => Want::Read { first, blocks, forced: true },
                _ => Want::Write { first, blocks, forced: true },
            };
        }
        if random.random_bool(self.write_share) {
            Want::Write { first, blocks, forced }
        } else {
            Want::Read { first, blocks, forced }
        }
    }

    /// The blocks of the next request; past the end of its area it starts again at the beginning.
    fn place(&mut self, random: &mut Pcg64Mcg) -> (u64, u64) {
        let (first, length) = self.area;
        let blocks = self.blocks.min(length);
        let most = length - blocks;
        let at = match self.walk {
            Walk::Anywhere => random.random_range(0..=most),
            Walk::Backward => self.next.checked_sub(blocks).unwrap_or(most),
            Walk::Nearly if random.random_bool(0.2) => {
                (self.next + random.random_range(0..=2 * blocks)).saturating_sub(blocks)
            }
            Walk::Forward | Walk::Nearly | Walk::Strided(_) => self.next,
        };
        let at = if at > most { 0 } else { at };
        self.next = match self.walk {
            Walk::Backward => at,
            Walk::Strided(stride) => at + stride,
            _ => at + blocks,
        };
        (first + at, blocks)
    }
}

/// Draws the clients' areas: separate runs of blocks, including the first and the last of the disk.
pub(crate) fn draw_areas(random: &mut Pcg64Mcg, disk_bytes: u64) -> Vec<(u64, u64)> {
    let disk = disk_bytes / BLOCK;
    let count = random.random_range(1..=6);
    let apart = disk / count;
    (0..count)
        .map(|number| {
            let blocks = [64, 512, 2048][random.random_range(0..3)].min(apart);
            match number {
                0 => (0, blocks),
                _ if number == count - 1 => (disk - blocks, blocks),
                _ => (number * apart + random.random_range(0..=apart - blocks), blocks),
            }
        })
        .collect()
}
