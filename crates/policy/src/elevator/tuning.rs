//! The parameters of all elevators, and their ranges.

use super::{AnticipatorySpec, BfqSpec, CfqSpec, DeadlineSpec, InsertionSpec, KyberSpec};

/// Parameters of the elevators, by elevator.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Tuning {
    pub deadline: DeadlineSpec,
    pub anticipatory: AnticipatorySpec,
    pub cfq: CfqSpec,
    pub bfq: BfqSpec,
    pub kyber: KyberSpec,
    pub insertion: InsertionSpec,
    /// The first block of the range of each arm of the disk; none for a disk with one arm.
    pub arm_firsts: Vec<u64>,
}

impl Tuning {
    /// Checks that every value is in range.
    ///
    /// *Errors:* the first that is not: its key (`cfq.quantum`), and the fault.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let Tuning { deadline, anticipatory, cfq, bfq, kyber, insertion: _, arm_firsts: _ } = self;
        let times = [
            ("deadline.read_expire", deadline.read_expire),
            ("deadline.write_expire", deadline.write_expire),
            ("deadline.prio_aging_expire", deadline.prio_aging_expire),
            ("anticipatory.read_expire", anticipatory.read_expire),
            ("anticipatory.write_expire", anticipatory.write_expire),
            ("anticipatory.read_batch_expire", anticipatory.read_batch_expire),
            ("anticipatory.write_batch_expire", anticipatory.write_batch_expire),
            ("anticipatory.antic_expire", anticipatory.antic_expire),
            ("cfq.fifo_expire_sync", cfq.fifo_expire_sync),
            ("cfq.fifo_expire_async", cfq.fifo_expire_async),
            ("cfq.slice_idle", cfq.slice_idle),
            ("bfq.slice_idle", bfq.slice_idle),
            ("bfq.fifo_expire_sync", bfq.fifo_expire_sync),
            ("bfq.fifo_expire_async", bfq.fifo_expire_async),
        ];
        // Slices of zero length would starve everyone; Linux does not accept them either.
        let slices = [
            ("cfq.slice_sync", cfq.slice_sync),
            ("cfq.slice_async", cfq.slice_async),
            ("cfq.target_latency", cfq.target_latency),
            ("bfq.timeout_sync", bfq.timeout_sync),
        ];
        let least = times.map(|time| (time, 0.0)).into_iter().chain(slices.map(|slice| (slice, 0.001)));
        for ((key, ms), least) in least {
            if !(least..=1e6).contains(&ms) {
                return Err((key, format!("{ms} ms is outside {least} to 1000000 ms")));
            }
        }
        let counts = [
            ("deadline.fifo_batch", deadline.fifo_batch),
            ("cfq.quantum", cfq.quantum),
            ("cfq.slice_async_rq", cfq.slice_async_rq),
            ("cfq.back_seek_penalty", cfq.back_seek_penalty),
            ("bfq.back_seek_penalty", bfq.back_seek_penalty),
        ];
        for (key, count) in counts {
            if !(1..=1_000_000).contains(&count) {
                return Err((key, format!("{count} is outside 1 to 1000000")));
            }
        }
        let latencies =
            [("kyber.read_lat_nsec", kyber.read_lat_nsec), ("kyber.write_lat_nsec", kyber.write_lat_nsec)];
        for (key, ns) in latencies {
            if !(1..=1_000_000_000_000).contains(&ns) {
                return Err((key, format!("{ns} ns is outside 1 to 1000000000000 ns")));
            }
        }
        for weight in &bfq.weights {
            if !(1..=1000).contains(weight) {
                return Err(("bfq.weights", format!("{weight} is outside 1 to 1000")));
            }
        }
        Ok(())
    }
}
