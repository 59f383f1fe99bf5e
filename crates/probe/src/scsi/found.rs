//! Results of the walk over the zones.

use headstack_model::Lbn;

/// A zone.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundZone {
    /// Its first cylinder.
    pub first_cylinder: u32,
    /// Its last cylinder that holds blocks.
    pub last_cylinder: u32,
    /// Its first block.
    pub first: Lbn,
    /// Blocks on a track without slips and spares.
    pub sectors_per_track: u32,
    /// How the tracks of a cylinder differ; none in a zone of one cylinder.
    pub(super) pattern: Option<Pattern>,
    /// Whether its last cylinder holds fewer blocks than the others.
    pub(super) is_short: bool,
    /// Whether its last track holds as many blocks as the others.
    pub(super) ends_in_whole_track: bool,
}

impl FoundZone {
    pub(super) fn cylinders(&self) -> u32 {
        self.last_cylinder + 1 - self.first_cylinder
    }
}

/// A cylinder with slips, and the number of blocks that it lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlippedCylinder {
    pub(super) cylinder: u32,
    pub(super) slips: u32,
    pub(super) lost: u32,
}

/// How a cylinder's tracks differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// All hold equally many blocks.
    Equal,
    /// The last in the order of blocks holds fewer.
    ShortLast,
    /// The first does.
    ShortFirst,
}

impl Pattern {
    /// The pattern of the tracks of a cylinder, in the order of blocks.
    pub(super) fn from_tracks(tracks: &[u32]) -> Option<Pattern> {
        let (first, last) = (*tracks.first()?, *tracks.last()?);
        let most = tracks.iter().copied().max()?;
        let full = tracks.iter().filter(|sectors| **sectors == most).count();
        match (full, tracks.len()) {
            (full, tracks) if full == tracks => Some(Pattern::Equal),
            (full, tracks) if full + 1 == tracks && last < most => Some(Pattern::ShortLast),
            (full, tracks) if full + 1 == tracks && first < most => Some(Pattern::ShortFirst),
            _ => None,
        }
    }
}
