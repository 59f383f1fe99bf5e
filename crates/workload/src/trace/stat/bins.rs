//! Sums over equal bins of a growing range: bins double their width when the range outgrows them.

const BINS: usize = 1024;

/// Sums over equal bins from 0 on.
#[derive(Clone, Debug)]
pub struct Bins {
    width: u64,
    sums: Vec<f64>,
}

impl Bins {
    /// No bins yet; the first one will have this width.
    pub(super) fn new(width: u64) -> Bins {
        Bins { width, sums: Vec::new() }
    }

    pub(super) fn add(&mut self, at: u64, amount: f64) {
        let bin = self.bin(at);
        self.sums[bin] += amount;
    }

    /// Adds `amount` for each unit from `from` to `to`.
    pub(super) fn add_span(&mut self, from: u64, to: u64, amount: f64) {
        if to <= from {
            return;
        }
        let last = self.bin(to - 1);
        for bin in self.bin(from)..=last {
            let start = from.max(bin as u64 * self.width);
            let end = to.min((bin as u64 + 1).saturating_mul(self.width));
            self.sums[bin] += amount * (end - start) as f64;
        }
    }

    fn bin(&mut self, at: u64) -> usize {
        while at / self.width >= BINS as u64 {
            let halves = self.sums.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.sums = halves;
            self.width *= 2;
        }
        let bin = (at / self.width) as usize;
        if bin >= self.sums.len() {
            self.sums.resize(bin + 1, 0.0);
        }
        bin
    }

    /// How wide each bin is.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// The sums, from the first bin on.
    pub fn sums(&self) -> &[f64] {
        &self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_growth_keeps_every_count() {
        let mut bins = Bins::new(10);
        for at in (0..100_000).step_by(7) {
            bins.add(at, 1.0);
        }
        assert_eq!(bins.sums().iter().sum::<f64>(), (0..100_000).step_by(7).count() as f64);
        assert_eq!(bins.width(), 160);
        assert!(bins.sums().len() <= BINS);
    }

    #[test]
    fn span_is_shared_among_its_bins() {
        let mut bins = Bins::new(10);
        bins.add_span(5, 25, 2.0);
        assert_eq!(bins.sums(), [10.0, 20.0, 10.0]);
        bins.add_span(7, 7, 2.0);
        assert_eq!(bins.sums(), [10.0, 20.0, 10.0]);
    }
}
