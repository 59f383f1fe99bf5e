//! A consumer drive of today: Seagate ST2000DM006, as one such drive was measured through a nearly full file system.
//!
//! Modelled: random reads over queue depth, the distribution of response times at depth 1, sequential rates over the
//! whole disk, random writes through the cache, FLUSH. Not modelled: the file system that the measurements went
//! through, and the rare responses beyond the 99th percentile.
//! *Source:* lumir-sliva/ublk-disksim, `docs/img/data` and `bench/expect/barracuda-2t.tsv`.

use crate::expect::Measured;
use crate::runs;
use headstack_model::DriveSpec;
use headstack_sim::DeviceError;

/// Queue depths at which random reads were measured.
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Quantiles of the response time at depth 1 that were published.
const PERCENTILES: [u32; 9] = [1, 5, 10, 25, 50, 75, 90, 95, 99];

/// Requests a run: the first hundredth of the response times is then known to a hundredth of its value.
const COUNT: u64 = 200_000;

/// Places over the disk at which 1 GiB each is read or written in order.
const PLACES: u64 = 32;

/// Computes every metric of the study.
///
/// *Errors:* a drive that cannot be simulated.
pub fn measure(spec: &DriveSpec) -> Result<Vec<Measured>, DeviceError> {
    let mut all = Vec::new();
    for depth in DEPTHS {
        let responses = runs::random_reads(spec, depth, COUNT)?;
        all.push(Measured::new(format!("random_read_qd{depth}_iops"), responses.rate()));
        if depth == 1 {
            all.push(Measured::new("random_read_qd1_mean_ms", responses.mean_ms()));
            for percent in PERCENTILES {
                let value = responses.quantile_ms(f64::from(percent) / 100.0);
                all.push(Measured::new(format!("random_read_qd1_p{percent}_ms"), value));
            }
        }
    }
    for (name, read_share) in [("read", 1.0), ("write", 0.0)] {
        let rate = runs::sequential_mb_s(spec, read_share, runs::spread(spec, PLACES, runs::stretch(spec)))?;
        all.push(Measured::new(format!("sequential_{name}_mb_s"), rate));
    }
    all.push(Measured::new("random_write_iops", runs::random_write_rate(spec, 1, 0, 30)?));
    for writes in [8, 64] {
        all.push(Measured::new(format!("flush_after_{writes}_ms"), runs::flush_ms(spec, writes, 100)?));
    }
    Ok(all)
}
