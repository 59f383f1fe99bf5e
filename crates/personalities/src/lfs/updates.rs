//! Files that are written again and again: which, and how large they are.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::ops::Range;

use headstack_workload::dist::{Distribution, DistributionError};
use headstack_workload::generator;

/// The shape of updates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateShape {
    /// Blocks of all files together.
    pub blocks: u32,
    /// Mean size of a file in blocks, exponentially distributed and at least one; all files have one block where it is 1.
    pub file_blocks: f64,
    /// Share of the files that are hot.
    pub hot: f64,
    /// Share of the updates that go to them. With both equal, updates are uniform.
    pub to_hot: f64,
}

/// An endless sequence of updates of whole files.
#[derive(Clone, Debug)]
pub struct Updates {
    /// The blocks of each file, hot files first.
    files: Vec<Range<u32>>,
    hot: usize,
    to_hot: f64,
    random: Pcg64Mcg,
}

impl Updates {
    /// Draws the files: they divide the blocks in order, with hot files spread among the others.
    ///
    /// *Errors:* an invalid mean. Shares are clamped to 0 to 1.
    pub fn new(shape: UpdateShape, seed: u64) -> Result<Updates, DistributionError> {
        let mut random = generator(seed);
        let sampler = Distribution::exponential(shape.file_blocks).sampler()?;
        let mut files = Vec::new();
        let mut next = 0;
        while next < shape.blocks {
            let drawn = if shape.file_blocks > 1.0 { sampler.draw(&mut random) } else { 1.0 };
            let end = next + (drawn.ceil().max(1.0) as u32).min(shape.blocks - next);
            files.push(next..end);
            next = end;
        }
        let hot = (files.len() as f64 * shape.hot.clamp(0.0, 1.0)).ceil() as usize;
        for index in 0..hot.min(files.len()) {
            let other = random.random_range(index..files.len());
            files.swap(index, other);
        }
        Ok(Updates { files, hot, to_hot: shape.to_hot.clamp(0.0, 1.0), random })
    }

    /// All files, each once.
    pub fn files(&self) -> &[Range<u32>] {
        &self.files
    }

    /// The blocks of the file that is written next.
    pub fn draw(&mut self) -> Range<u32> {
        let is_hot = self.hot == self.files.len() || self.hot > 0 && self.random.random_bool(self.to_hot);
        let among = if is_hot { 0..self.hot } else { self.hot..self.files.len() };
        self.files[self.random.random_range(among)].clone()
    }
}
