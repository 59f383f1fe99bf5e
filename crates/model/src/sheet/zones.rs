//! Tracks and zones: their density follows from the rates, their number from the capacity.

use super::seek::Seeks;
use super::text::Text;
use super::{DataSheet, Figure, SheetError, significant, within};
use crate::SheetCurve;

/// Zones of a drive whose inner tracks are slower.
const ZONES: u32 = 16;
/// The innermost rate as a share of the outermost: below [`BANDED_FROM_BYTES`], as of shipped drives of before 2000, and from there on.
const INNER_SHARES: [f64; 2] = [0.65, 0.5];
/// Smallest number of physical sectors on a track.
const PHYSICAL_SECTORS_LEAST: f64 = 16.0;
/// Largest share of a revolution that a skew takes.
const SKEW_MOST: f64 = 0.7;
/// Margin of a skew beyond a seek to the next track and the settling of a write.
const MARGIN_MS: f64 = 0.1;
/// Bytes that pass in a revolution of a sustained read, from which on blocks run along a surface before they change to the next.
/// *Source:* H. Wong, Discovering Hard Disk Physical Geometry through Microbenchmarking (2019): drives after about 2000.
const BANDED_FROM_BYTES: f64 = 300_000.0;
/// Tracks of one surface in a band, as Wong's drives have them.
const BAND_TRACKS: u32 = 400;
/// Cylinders of a drive whose outermost tracks have [`USUAL_TRACK_BYTES`], and how they grow with the density of a track:
/// fits the shipped drives from 1991 to 2020 within a fifth.
const USUAL_CYLINDERS: f64 = 6962.0;
const USUAL_TRACK_BYTES: f64 = 254.0 * 512.0;
const USUAL_GROWTH: f64 = 1.44;

/// Zones of equal numbers of cylinders.
#[derive(Clone, Debug)]
pub(super) struct Tracks {
    pub(super) cylinders: u32,
    heads: Figure<u32>,
    zones: Vec<Zone>,
    is_banded: bool,
    turn_ms: f64,
    inner: Figure<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    first_cylinder: u32,
    last_cylinder: u32,
    sectors_per_track: u32,
    /// From a track to the next, such that the sustained rate is exactly the required one.
    skew_turns: f64,
}

impl Tracks {
    pub(super) fn new(sheet: &DataSheet, seeks: &Seeks) -> Result<Tracks, SheetError> {
        let turn_ms = 60_000.0 / sheet.rpm;
        let next_ms = seeks.write_next_ms();
        let least_skew = (next_ms + MARGIN_MS) / turn_ms;
        let slowest = SKEW_MOST * turn_ms - (next_ms - seeks.next_ms.value) - MARGIN_MS;
        within("track to track", seeks.next_ms.value, [0.0, slowest], "ms", || {
            format!(" (with the settling of a write {SKEW_MOST} of a turn)")
        })?;
        let turn_bytes = sheet.mb_s * turn_ms * 1e3;
        let is_banded = turn_bytes >= BANDED_FROM_BYTES;
        let share = INNER_SHARES[usize::from(is_banded)];
        let inner = Figure::new(
            sheet.inner_mb_s,
            significant(share * sheet.mb_s, 4),
            "the share of the outermost rate that drives of this density have",
        );
        let least = PHYSICAL_SECTORS_LEAST * f64::from(sheet.physical_sector_bytes().value) / turn_bytes;
        for (figure, rate, most) in [("rate", sheet.mb_s, 2000.0), ("inner rate", inner.value, sheet.mb_s)] {
            within(figure, rate, [least * sheet.mb_s, most], "MB/s", || {
                format!(" ({PHYSICAL_SECTORS_LEAST} physical sectors a track at least)")
            })?;
        }
        let count = if inner.value < sheet.mb_s { ZONES } else { 1 };
        let step = f64::from((count - 1).max(1));
        let rate = |zone: u32| sheet.mb_s - (sheet.mb_s - inner.value) * f64::from(zone) / step;
        let dense: Vec<(u32, f64)> =
            (0..count).map(|zone| density(sheet, rate(zone) * turn_ms * 1e3, least_skew)).collect();
        let outer = dense[0].0;
        within("rate", sheet.mb_s, [0.0, 65_535.0 / f64::from(outer) * sheet.mb_s], "MB/s", || {
            " (65,535 sectors a track)".to_string()
        })?;
        let track_bytes = f64::from(outer) * f64::from(sheet.sector_bytes());
        let mean = dense.iter().map(|(sectors, _)| f64::from(*sectors)).sum::<f64>() / f64::from(count);
        let tracks = sheet.capacity_sectors() as f64 / mean;
        let usual = USUAL_CYLINDERS * (track_bytes / USUAL_TRACK_BYTES).powf(USUAL_GROWTH);
        let heads = Figure::new(
            sheet.heads,
            (tracks / usual).round().clamp(1.0, 64.0) as u32,
            "as many tracks a surface as shipped drives of this density have",
        );
        let cylinders = tracks / f64::from(heads.value);
        let most = f64::from(heads.value) * mean * f64::from(sheet.sector_bytes());
        within("capacity", sheet.capacity_bytes as f64, [64.0 * most, 1e7 * most], "bytes", || {
            format!(" (64 to 10,000,000 tracks on each of {} surfaces)", heads.value)
        })?;
        let (cylinders, zones) = cut(sheet, cylinders as u32, heads.value, &dense);
        Ok(Tracks { cylinders, heads, zones, is_banded, turn_ms, inner })
    }

    pub(super) fn write(&self, text: &mut Text, curve: &SheetCurve) {
        text.table("geometry");
        text.line("heads", self.heads.value, &self.heads.source());
        text.line(
            "cylinders",
            self.cylinders,
            "derived: from the capacity, the heads and the sectors a track",
        );
        let layout = if self.is_banded { "ff" } else { "cylinder" };
        text.word("layout", layout, "assumption: as drives of this density are laid out");
        text.comment(&format!(
            "derived: as dense as the rate (given) needs with skews of a seek to the next track and {MARGIN_MS} ms more; assumptions: {} zones, {} MB/s on the innermost tracks ({})",
            self.zones.len(),
            self.inner.value,
            self.inner.source()
        ));
        let head_skew = self.head_skew(curve);
        text.push(if self.is_banded {
            "band_zones = [ # derived: as above"
        } else {
            "zones = [ # derived: as above"
        });
        for zone in &self.zones {
            text.push(&format!("  {},", self.zone(zone, head_skew)));
        }
        text.push("]");
    }

    fn zone(&self, zone: &Zone, head_skew: f64) -> String {
        let Zone { first_cylinder, last_cylinder, sectors_per_track, skew_turns } = zone;
        let range = format!("first_cylinder = {first_cylinder}, last_cylinder = {last_cylinder}");
        if self.is_banded {
            return format!(
                "{{ {range}, band_tracks = {BAND_TRACKS}, sectors_per_track = [{sectors_per_track}], track_skew_turns = {skew_turns:.5}, head_skew_turns = {head_skew:.5} }}"
            );
        }
        let skew = skew_turns * f64::from(*sectors_per_track);
        format!(
            "{{ {range}, sectors_per_track = {sectors_per_track}, track_skew_sectors = {skew:.3}, cylinder_skew_sectors = {skew:.3} }}"
        )
    }

    /// Skew at a change of surface: time for the arm to seek back over a band.
    fn head_skew(&self, curve: &SheetCurve) -> f64 {
        let band = BAND_TRACKS.min(self.cylinders - 1);
        let back = curve.write_ms(band).unwrap_or_else(|| curve.read_ms(band));
        ((back + MARGIN_MS) / self.turn_ms).fract()
    }
}

/// Sectors per track and skew that give `bytes` in the time of a revolution, the skew included. The sectors are whole physical
/// ones; the skew compensates for the rounding.
fn density(sheet: &DataSheet, bytes: f64, least_skew: f64) -> (u32, f64) {
    let physical = sheet.sectors_per_physical();
    let sectors = bytes / f64::from(sheet.sector_bytes());
    let whole = (sectors * (1.0 + least_skew) / f64::from(physical)).ceil() as u32 * physical;
    (whole, f64::from(whole) / sectors - 1.0)
}

/// Zones of equal numbers of cylinders, with as many cylinders as the capacity needs.
fn cut(sheet: &DataSheet, about: u32, heads: u32, dense: &[(u32, f64)]) -> (u32, Vec<Zone>) {
    let count = dense.len() as u32;
    let mut cylinders = about.max(count);
    loop {
        let bound = |zone: u32| (u64::from(cylinders) * u64::from(zone) / u64::from(count)) as u32;
        let zone = |(index, (sectors_per_track, skew_turns)): (usize, &(u32, f64))| Zone {
            first_cylinder: bound(index as u32),
            last_cylinder: bound(index as u32 + 1) - 1,
            sectors_per_track: *sectors_per_track,
            skew_turns: *skew_turns,
        };
        let zones: Vec<Zone> = dense.iter().enumerate().map(zone).collect();
        let room = |zone: &Zone| {
            u64::from(zone.last_cylinder - zone.first_cylinder + 1) * u64::from(zone.sectors_per_track)
        };
        let room = u64::from(heads) * zones.iter().map(room).sum::<u64>();
        match sheet.capacity_sectors().checked_sub(room) {
            None | Some(0) => return (cylinders, zones),
            Some(short) => {
                let least = u64::from(heads) * u64::from(dense[0].0);
                cylinders += (short / least).max(1) as u32;
            }
        }
    }
}
