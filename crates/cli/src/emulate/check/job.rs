//! The jobs of a comparison.

use crate::failure::Failure;
use headstack_model::{Instant, Nanos};
use headstack_workload::{Closed, Load, Pattern, Poll, Region, Shape, VolumeInfo};

pub(super) struct Job {
    pub(super) name: &'static str,
    pattern: Pattern,
    bytes: u32,
    read_share: f64,
    depth: u32,
}

const fn job(name: &'static str, pattern: Pattern, bytes: u32, read_share: f64, depth: u32) -> Job {
    Job { name, pattern, bytes, read_share, depth }
}

/// All jobs. Their requests take long compared with a machine's lateness. With requests of a third of a millisecond, a few late ones would
/// dominate the distance between the distributions.
pub(super) const ALL: [Job; 6] = [
    job("random read, depth 1", Pattern::Random, 4096, 1.0, 1),
    job("random read, depth 8", Pattern::Random, 4096, 1.0, 8),
    job("random read, depth 32", Pattern::Random, 4096, 1.0, 32),
    job("sequential read, 1 MiB", Pattern::Sequential, 1 << 20, 1.0, 1),
    job("random write, depth 8", Pattern::Random, 4096, 0.0, 8),
    job("70 % reads, depth 8", Pattern::Random, 4096, 0.7, 8),
];

impl Job {
    /// The response times without those of the first `depth` requests. These find the platter at an arbitrary angle, which would dominate a
    /// comparison of short requests.
    pub(super) fn counted(&self, mut times: Vec<Nanos>) -> Vec<Nanos> {
        times.drain(..times.len().min(self.depth as usize));
        times
    }

    pub(super) fn load(&self, info: &VolumeInfo, end: Instant, seed: u64) -> Result<Until, Failure> {
        let sectors = (self.bytes / info.sector_bytes).max(1);
        let region = Region::whole(info.sectors);
        let shape =
            Shape { region, pattern: self.pattern, sectors, alignment: sectors, read_share: self.read_share };
        let load = Closed::new(shape, self.depth, u64::MAX, seed).map_err(Failure::input)?;
        Ok(Until { load, end })
    }
}

pub(super) struct Until {
    load: Closed,
    end: Instant,
}

impl Load for Until {
    fn poll(&mut self, now: Instant) -> Poll {
        if now < self.end { self.load.poll(now) } else { Poll::Done }
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.load.handle_completion(now, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_responses_are_excluded_from_the_count() {
        let times: Vec<Nanos> = (0..10).map(Nanos).collect();
        assert_eq!(ALL[1].counted(times.clone()), times[8..]);
        assert_eq!(ALL[2].counted(times), []);
    }
}
