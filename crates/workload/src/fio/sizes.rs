//! How many bytes a request has.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::settings::{RequestSizes, Split};

#[derive(Clone, Debug)]
pub(super) enum Sizes {
    Fixed(u64),
    Range {
        least: u64,
        most: u64,
        aligned: bool,
    },
    /// By growing share; the second number is the percent of all draws up to this one.
    Split(Vec<(u64, u64)>),
}

impl Sizes {
    /// The sizes of `bs`, `bsrange` and `bssplit` for a direction.
    pub(super) fn new(blocks: &RequestSizes, direction: usize) -> Sizes {
        let split: &[Split] = &blocks.split[direction];
        if !split.is_empty() {
            let mut upto = 0;
            let add = |split: &Split| {
                upto += split.percent;
                (split.bytes, upto)
            };
            let all: Vec<(u64, u64)> = split.iter().filter(|split| split.percent > 0).map(add).collect();
            return if let [(only, _)] = all[..] { Sizes::Fixed(only) } else { Sizes::Split(all) };
        }
        let single = (blocks.bytes[direction], blocks.bytes[direction]);
        let (least, most) = blocks.range[direction].unwrap_or(single);
        if least == most {
            return Sizes::Fixed(least);
        }
        Sizes::Range { least, most, aligned: !blocks.unaligned }
    }

    pub(super) fn least(&self) -> u64 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Range { least, .. } => *least,
            Sizes::Split(all) => all.iter().map(|(bytes, _)| *bytes).min().expect("a split has sizes"),
        }
    }

    pub(super) fn most(&self) -> u64 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Range { most, .. } => *most,
            Sizes::Split(all) => all.iter().map(|(bytes, _)| *bytes).max().expect("a split has sizes"),
        }
    }

    /// All possible sizes, as far as they have to be multiples of a sector.
    pub(super) fn steps(&self) -> Vec<u64> {
        match self {
            Sizes::Split(all) => all.iter().map(|(bytes, _)| *bytes).collect(),
            Sizes::Range { aligned: false, .. } => vec![1],
            _ => vec![self.least(), self.most()],
        }
    }

    /// The size of a request for which there are `room` bytes; `None` if the smallest does not fit. A single size is returned
    /// whether it fits or not.
    #[inline]
    pub(super) fn draw(&self, room: u64, random: &mut Pcg64Mcg) -> Option<u64> {
        match self {
            Sizes::Fixed(bytes) => Some(*bytes),
            Sizes::Range { least, most, aligned } => {
                if *least > room {
                    return None;
                }
                loop {
                    // fio adds a share of the largest size to the smallest and cuts the excess.
                    let drawn = least + (*most as f64 * random.random::<f64>()) as u64;
                    let whole = if *aligned { drawn - drawn % least } else { drawn };
                    let bytes = whole.min(*most);
                    if bytes <= room {
                        return Some(bytes);
                    }
                }
            }
            Sizes::Split(all) => draw_split(all, room, random),
        }
    }
}

/// The first size, by growing share, that the draw falls into and that fits.
fn draw_split(all: &[(u64, u64)], room: u64, random: &mut Pcg64Mcg) -> Option<u64> {
    if all.iter().all(|(bytes, _)| *bytes > room) {
        return None;
    }
    let last = all.len() - 1;
    loop {
        let share = random.random::<f64>() * 100.0;
        let found = all.iter().position(|(bytes, upto)| share <= *upto as f64 && *bytes <= room);
        let (bytes, _) = all[found.unwrap_or(last)];
        if bytes <= room {
            return Some(bytes);
        }
    }
}
