//! The persistent cache of a shingled disk as the device uses it: its translation layer, and where its sectors lie.

use super::DeviceError;
use super::view::ShingleView;
use crate::shingled::{LoggedExtent, ShingleLayout, ShingleTranslation};
use headstack_model::spec::{CachePlacement, ShingledSpec};
use headstack_model::{DriveSpec, Instant, Lbn, Nanos, TrackPlace};
use std::ops::Range;

/// The persistent cache, its map, and the time of cleaning.
#[derive(Debug)]
pub(super) struct PersistentCache {
    pub(super) layer: ShingleTranslation,
    /// First block of each piece of the cache, and the sectors of a piece.
    pieces: Vec<u64>,
    piece_sectors: u64,
    pub(super) record_extents_max: usize,
    pub(super) record_max_sectors: u64,
    /// The number of records after which the map is saved (0 for never), and the time of that.
    map_save: (u32, Nanos),
    /// Records since the map was saved.
    unsaved: u32,
    pub(super) idle: Nanos,
    pub(super) quiet_since: Instant,
    pub(super) sector_bytes: u64,
    /// Whether the write in progress is one of the log or of a whole band.
    pub(super) is_writing: bool,
    /// The track on which the last record ended.
    pub(super) log_end: Option<TrackPlace>,
    /// Extents of the next record.
    pub(super) extents: Vec<LoggedExtent>,
}

impl PersistentCache {
    /// The persistent cache of a drive file.
    ///
    /// *Errors:* sizes that do not fit together.
    pub(super) fn new(spec: &DriveSpec) -> Result<Option<Box<PersistentCache>>, DeviceError> {
        let Some(keys) = &spec.shingled else { return Ok(None) };
        let layout = ShingleLayout {
            sectors: spec.capacity_sectors,
            band_sectors: u64::from(keys.band_sectors),
            cache_sectors: keys.cache_sectors,
            header_sectors: u64::from(keys.header_sectors),
            record_copies: u64::from(keys.record_copies),
            // An extent may be split at the border of two bands.
            record_extents_max: 2 * keys.record_extents_max as usize,
            map_entries_max: keys.map_entries_max as usize,
            records_max: keys.records_max as usize,
            step_sectors: u64::from(keys.clean_step_sectors),
        };
        Ok(Some(Box::new(PersistentCache {
            layer: ShingleTranslation::new(layout)?,
            pieces: pieces(keys, spec.capacity_sectors),
            piece_sectors: keys.cache_sectors.div_ceil(u64::from(keys.pieces)),
            record_extents_max: keys.record_extents_max as usize,
            record_max_sectors: u64::from(keys.record_max_sectors),
            map_save: (keys.map_save_records, Nanos::from_ms(keys.map_save_ms)),
            unsaved: 0,
            idle: Nanos::from_ms(keys.idle_ms),
            quiet_since: Instant::ZERO,
            sector_bytes: u64::from(spec.sector_bytes),
            is_writing: false,
            log_end: None,
            extents: Vec::new(),
        })))
    }

    pub(super) fn view(&self) -> ShingleView {
        let cleaned_band = self.layer.cleaned_band().map(|(first, end)| Lbn(first)..Lbn(end));
        ShingleView {
            log_sectors: self.layer.layout().log_sectors(),
            free_sectors: self.layer.free_sectors(),
            cleaned_band,
        }
    }

    /// Records that a command arrived or ended.
    #[inline]
    pub(super) fn note_command(&mut self, now: Instant) {
        self.quiet_since = now;
    }

    /// Counts a record; returns the time in which the drive saves its map after it.
    pub(super) fn save_map(&mut self) -> Nanos {
        let (records, time) = self.map_save;
        self.unsaved += 1;
        if records == 0 || self.unsaved < records {
            return Nanos::ZERO;
        }
        self.unsaved = 0;
        time
    }

    /// The blocks of the band of a block.
    pub(super) fn band(&self, lbn: Lbn) -> Range<Lbn> {
        let layout = self.layer.layout();
        let (first, end) = layout.band(layout.band_of(lbn.0));
        Lbn(first)..Lbn(end)
    }

    /// Whether the band of a block may be written as a whole now.
    pub(super) fn may_write_band(&self, lbn: Lbn) -> bool {
        self.layer.may_write_band(self.layer.layout().band_of(lbn.0))
    }

    /// The runs of blocks whose places hold these sectors of the cache.
    pub(super) fn runs(&self, place: u64, sectors: u64) -> impl Iterator<Item = Range<Lbn>> + '_ {
        let (mut next, end) = (place, place + sectors);
        std::iter::from_fn(move || {
            let (piece, into) = ((next / self.piece_sectors) as usize, next % self.piece_sectors);
            let count = (end - next).min(self.piece_sectors - into);
            next += count;
            let first = Lbn(self.pieces[piece] + into);
            (count > 0).then(|| first..first + count)
        })
    }
}

/// First block of each piece of the cache.
fn pieces(keys: &ShingledSpec, sectors: u64) -> Vec<u64> {
    let count = u64::from(keys.pieces);
    let middle = |piece: u64| {
        let middle = u128::from(sectors) * u128::from(2 * piece + 1) / u128::from(2 * count);
        (middle as u64).min(sectors - keys.cache_sectors.div_ceil(count))
    };
    match keys.cache_placement {
        CachePlacement::Outer => vec![0],
        CachePlacement::Spread => (0..count).map(middle).collect(),
    }
}
