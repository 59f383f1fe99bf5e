//! The translation layer after a power cut, from what is on the media.

use super::layout::{ShingleLayout, ShingleLayoutError};
use super::log::ShingleLog;
use super::messages::{BandCleaned, ScratchHeader, ShingleAnchor, ShingleRecord};
use super::translation::ShingleTranslation;

/// Reads headers from the persistent cache. A header that is torn or overwritten counts as none.
pub trait ShingleMedia {
    /// The anchor at a sector of the cache.
    fn anchor(&mut self, place: u64) -> Option<ShingleAnchor>;
    /// The record whose header begins at a sector of the cache, if its data are whole too.
    fn record(&mut self, place: u64) -> Option<ShingleRecord>;
    /// The header of the scratch area.
    fn scratch(&mut self, place: u64) -> Option<ScratchHeader>;
}

impl ShingleTranslation {
    /// The layer of a disk in use. A band whose write was interrupted is written again by the next steps of cleaning.
    ///
    /// *Errors:* sizes that do not fit together.
    pub fn recover(
        layout: ShingleLayout,
        media: &mut impl ShingleMedia,
    ) -> Result<ShingleTranslation, ShingleLayoutError> {
        layout.check()?;
        let anchors = [0, 1].into_iter().filter_map(|slot| media.anchor(layout.anchor_place(slot)));
        let newest = anchors.max_by_key(|anchor| anchor.generation);
        let anchor = newest.unwrap_or(ShingleLog::first_anchor(&layout));
        let mut layer = ShingleTranslation::with_anchor(layout, anchor);
        let mut cleaned = Vec::new();
        while let Some(record) = layer.next_on_media(media) {
            cleaned.extend(record.cleaned);
            layer.apply(&record);
        }
        if let Some(header) = media.scratch(layout.scratch_header())
            && is_unfinished(header, &anchor, &cleaned)
        {
            layer.resume_cleaning(header);
        }
        Ok(layer)
    }

    /// The record that follows: at the head, or at the log's start where it did not fit before the end.
    fn next_on_media(&self, media: &mut impl ShingleMedia) -> Option<ShingleRecord> {
        let (log, layout) = (self.log(), self.layout());
        let fits = log.head() + layout.header_sectors <= layout.cache_sectors;
        let places = [fits.then_some(log.head()), Some(layout.log_first())];
        let mut found = places.into_iter().flatten().filter_map(|place| media.record(place));
        found.find(|record| record.sequence == log.next_sequence())
    }
}

/// Whether the scratch area's band was not yet recorded as clean. The anchor stays behind the band's oldest extent until then.
fn is_unfinished(header: ScratchHeader, anchor: &ShingleAnchor, cleaned: &[BandCleaned]) -> bool {
    let ends = |record: &BandCleaned| record.band == header.band && record.up_to >= header.up_to;
    header.up_to >= anchor.sequence && !cleaned.iter().any(ends)
}
