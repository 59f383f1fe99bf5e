//! How often the same blocks are accessed again: footprint, reuse and the exponent of Zipf's law, in constant memory.
//!
//! Accesses are counted for each block of 4 KiB. When more than 65,536 blocks would be counted, those whose hash lies in
//! the upper half are left out from then on, and so on: the rest is a fair sample of all blocks, and figures are
//! scaled up from it. Up to that many blocks all figures are exact.
//!
//! *Source:* the sampling is that of SHARDS (Waldspurger, Park, Garthwaite and Ahmad 2015).

use std::collections::BTreeMap;

pub(super) const BLOCK: u64 = 4096;
/// Largest number of counted blocks.
const MOST: usize = 65_536;
/// Largest number of blocks counted per request: 4 GiB.
const LONGEST: u64 = 1 << 20;
/// Accesses that a block must have to be included in the fit, and how many such blocks there must be.
const FIT_COUNT: u64 = 5;
const FIT_BLOCKS: usize = 20;

#[derive(Clone, Debug)]
pub(super) struct Reuse {
    counts: BTreeMap<(u32, u64), u64>,
    /// Blocks whose hash, shifted right by this, is not 0 are left out.
    shift: u32,
}

impl Reuse {
    pub(super) fn new() -> Reuse {
        Reuse { counts: BTreeMap::new(), shift: 64 }
    }

    pub(super) fn observe(&mut self, device: u32, offset: u64, bytes: u64) {
        let first = offset / BLOCK;
        let count = (offset.saturating_add(bytes).div_ceil(BLOCK) - first).min(LONGEST);
        for block in first..first + count {
            if self.left_out(device, block) {
                continue;
            }
            *self.counts.entry((device, block)).or_insert(0) += 1;
            while self.counts.len() > MOST {
                self.shift -= 1;
                let shift = self.shift;
                self.counts.retain(|(device, block), _| hash(*device, *block) >> shift == 0);
            }
        }
    }

    fn left_out(&self, device: u32, block: u64) -> bool {
        self.shift < 64 && hash(device, block) >> self.shift != 0
    }

    pub(super) fn share(&self) -> f64 {
        0.5f64.powi(64 - self.shift as i32)
    }

    pub(super) fn footprint(&self) -> f64 {
        self.counts.len() as f64 * BLOCK as f64 / self.share()
    }

    pub(super) fn reused(&self) -> Option<f64> {
        let accesses: u64 = self.counts.values().sum();
        (accesses > 0).then(|| 1.0 - self.counts.len() as f64 / accesses as f64)
    }

    /// The exponent of Zipf's law: the slope of a line through the logarithms of rank and accesses, at increasingly spaced ranks,
    /// among blocks with five accesses or more. `None` for fewer than twenty of these.
    pub(super) fn zipf(&self) -> Option<f64> {
        let mut counts: Vec<u64> =
            self.counts.values().copied().filter(|count| *count >= FIT_COUNT).collect();
        if counts.len() < FIT_BLOCKS {
            return None;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let mut points = Vec::new();
        let mut rank = 1;
        while rank <= counts.len() {
            points.push((libm::log(rank as f64), libm::log(counts[rank - 1] as f64)));
            rank += (rank / 10).max(1);
        }
        Some(-slope(&points))
    }
}

fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let across: f64 = points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum();
    both / across
}

/// A hash that spreads neighbouring blocks over all numbers (the finaliser of SplitMix64).
fn hash(device: u32, block: u64) -> u64 {
    let mut x = (block ^ u64::from(device).rotate_right(16)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_footprint_is_exact() {
        let mut reuse = Reuse::new();
        reuse.observe(0, 100, 8192);
        reuse.observe(0, 4096, 4096);
        reuse.observe(1, 4096, 4096);
        assert_eq!((reuse.footprint(), reuse.share()), (4.0 * 4096.0, 1.0));
        assert!((reuse.reused().expect("there are accesses") - 0.2).abs() < 1e-12);
        assert_eq!(reuse.zipf(), None);
    }

    #[test]
    fn large_footprint_is_estimated_within_2_percent() {
        let mut reuse = Reuse::new();
        for block in 0..1_000_000u64 {
            reuse.observe(0, block * BLOCK, BLOCK);
        }
        assert!(reuse.counts.len() <= MOST && reuse.share() == 1.0 / 16.0);
        let blocks = reuse.footprint() / BLOCK as f64;
        assert!((blocks / 1e6 - 1.0).abs() < 0.02, "{blocks}");
        assert_eq!(reuse.reused(), Some(0.0));
    }

    #[test]
    fn zipf_exponent_is_recovered() {
        for exponent in [0.6, 1.0, 1.4] {
            let mut reuse = Reuse::new();
            for block in 1..=2000u64 {
                let accesses = 20_000.0 * libm::pow(block as f64, -exponent);
                (0..accesses as u64).for_each(|_| reuse.observe(0, block * 7 * BLOCK, 512));
            }
            let found = reuse.zipf().expect("there are enough blocks");
            assert!((found - exponent).abs() < 0.03, "{exponent}: {found}");
        }
    }
}
