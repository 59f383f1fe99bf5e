//! A partition: the load addresses the blocks of a volume from a start on, and the layers below it those of the whole volume.
//!
//! Modelled: the start. A partition ends with its volume. *Source:* Linux `block/blk-core.c`, `blk_partition_remap` (the start is added to the
//! block number below the page cache).

use crate::layer::{Layer, Out, Submission};
use headstack_model::{Instant, Lbn, Op, Request};

/// Bytes of the unit in which a partition's start is given, whatever the drive's sectors are (Linux, `/sys/block/DISK/PARTITION/start`).
pub(crate) const UNIT_BYTES: u64 = 512;

/// The first sector of a partition that starts at `start`, on a volume of `sectors`.
///
/// *Errors:* the start is no sector of the volume.
pub(crate) fn first_sector(start: u64, sectors: u64, sector_bytes: u32) -> Result<u64, String> {
    let per_volume = sectors.saturating_mul(u64::from(sector_bytes)) / UNIT_BYTES;
    if start >= per_volume {
        return Err(format!("{start} is outside 0 to {} sectors of 512 bytes", per_volume.saturating_sub(1)));
    }
    let bytes = start * UNIT_BYTES;
    if !bytes.is_multiple_of(sector_bytes.into()) {
        return Err(format!(
            "{start} sectors of 512 bytes are no whole number of sectors of {sector_bytes} bytes"
        ));
    }
    Ok(bytes / u64::from(sector_bytes))
}

/// Adds the start of the partition to the block number of each request.
#[derive(Debug)]
pub(crate) struct PartitionLayer {
    pub(crate) first: u64,
}

impl Layer for PartitionLayer {
    fn submit(&mut self, _now: Instant, submission: Submission, out: &mut Out<'_>) {
        let Request { op, lbn, .. } = submission.request;
        // A block beyond the partition's end is beyond the volume's end, so that the volume refuses it.
        out.forward(0, if op == Op::Flush { lbn } else { Lbn(lbn.0.saturating_add(self.first)) });
    }
}

#[cfg(test)]
mod tests {
    use crate::device::Completion;
    use crate::rig::Rig;
    use headstack_model::{Lbn, Request, drives};
    use headstack_workload::{Closed, Load, Pattern, Region, Shape};

    /// A drive with 4,096 bytes a physical sector that writes at once, with more keys.
    fn rig(keys: &str) -> Rig {
        let text = format!("[drive]\npreset = \"st2000dm006\"\ncache.write_cache = \"none\"\n{keys}\n");
        Rig::parse(&text, "rig", &mut |name| drives::load(name)).expect("the rig is good")
    }

    fn run(rig: &Rig, pattern: Pattern, read_share: f64, first: u64) -> Vec<Completion> {
        let region = Region { first: Lbn(first), sectors: 1 << 20 };
        let shape = Shape { region, pattern, sectors: 8, alignment: 8, read_share };
        let mut load: Box<dyn Load> = Box::new(Closed::new(shape, 4, 200, 7).expect("it fits"));
        let mut all = Vec::new();
        let mut engine = rig.build(5).expect("the rig is good");
        engine.run(load.as_mut(), &mut |finished| all.push(finished.completion));
        all
    }

    fn seconds(completions: &[Completion]) -> f64 {
        completions.last().expect("there are some").completed.0 as f64 / 1e9
    }

    #[test]
    fn request_to_a_partition_runs_as_the_same_one_to_the_whole_disk() {
        let in_partition = run(&rig("[host]\npartition_start = 2048"), Pattern::Random, 0.5, 0);
        let on_disk = run(&rig(""), Pattern::Random, 0.5, 2048);
        let moved = |completion: &Completion| {
            let request = Request { lbn: Lbn(completion.request.lbn.0 + 2048), ..completion.request };
            Completion { request, ..*completion }
        };
        assert_eq!(in_partition.iter().map(moved).collect::<Vec<_>>(), on_disk);
    }

    #[test]
    fn write_of_a_page_loses_a_revolution_where_the_partition_cuts_physical_sectors() {
        let time = |start: u64| {
            seconds(&run(&rig(&format!("[host]\npartition_start = {start}")), Pattern::Random, 0.0, 0))
        };
        let (aligned, cut) = (time(2048), time(63));
        // 8.33 ms at 7,200 rpm; the seeks in between are the same, and chance moves the latency.
        let lost_ms = (cut - aligned) / 200.0 * 1e3;
        assert!((lost_ms - 8.33).abs() < 0.5, "{lost_ms} ms");
    }

    #[test]
    fn page_cache_counts_its_pages_from_the_start_of_the_partition() {
        let cache = "[host.page_cache]\nbuffer_direct = true\nread_ahead_kb = 0";
        let mut engine =
            rig(&format!("[host]\npartition_start = 63\n{cache}")).build(5).expect("the rig is good");
        engine.log_arms();
        // Half a page at the start of the second page.
        let region = Region { first: Lbn(8), sectors: 4 };
        let shape = Shape { region, pattern: Pattern::Sequential, sectors: 4, alignment: 4, read_share: 1.0 };
        engine.run(&mut Closed::new(shape, 1, 1, 7).expect("it fits"), &mut |_| {});
        let read = engine.poll_arm_record(0).expect("the page is read from the disk");
        assert_eq!(read.blocks, Lbn(63 + 8)..Lbn(63 + 16));
    }

    #[test]
    fn volume_ends_where_the_disk_does_and_a_block_behind_it_is_refused() {
        let whole = rig("").volumes()[0].sectors;
        let rig = rig("[host]\npartition_start = 2048");
        assert_eq!(rig.volumes()[0].sectors, whole - 2048);
        let region = Region { first: Lbn(whole - 2056), sectors: 16 };
        let shape = Shape { region, pattern: Pattern::Sequential, sectors: 8, alignment: 8, read_share: 1.0 };
        let mut load = Closed::new(shape, 1, 2, 7).expect("it fits");
        let mut outcomes = Vec::new();
        let mut engine = rig.build(5).expect("the rig is good");
        engine.run(&mut load, &mut |finished| outcomes.push(finished.completion.outcome));
        assert_eq!(outcomes, [crate::Outcome::Done, crate::Outcome::OutOfRange]);
    }
}
