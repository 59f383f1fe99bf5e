//! Hypotheses about a track that does not match the pattern before it.
//!
//! The walk reads a few sectors of the track and classifies it by these functions, which read nothing: sectors were slipped in
//! it, another surface or zone begins with it, or no angle shows where it ends.

use super::boundary::BREAK;
use super::pattern::{Shape, wrap, wrap_from};

/// Shares of a track at which its density is compared with the prediction: before the spares at its end, and half as far.
pub(super) const DENSITY_PLACES: [f64; 2] = [0.7, 0.35];
/// Minimum offset of the farther place, in tolerances: two readings have √2 = 1.4 deviations; the rest is margin.
const LEAST_OFF: f64 = 1.5;
/// Maximum turns by which another zone's density moves the farther place earlier. *Source:* assumption, zones differ by less than
/// 0.2 / 0.7 = 29 %.
const MOST_EARLIER: f64 = 0.2;
/// Tolerances within which the offset of the nearer place is half that of the farther one, and their maximum as a share of the latter.
const PROPORTIONAL: (f64, f64) = (1.2, 0.25);
/// Minimum tolerances by which a lower density moves the farther place later: a slip of fewer sectors looks the same.
const LEAST_LATER: f64 = 3.2;
/// Tolerances up to which an offset is no slip: the first sector of a track and its prediction are both uncertain.
const LEAST_SLIPPED: f64 = 2.0;

/// What the walk assumes of a track, or of the one behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Hypothesis {
    /// The pattern continues.
    Pattern,
    /// Sectors of the track were slipped: it holds `sectors`, and the pattern continues behind it.
    Slip { sectors: u64 },
    /// The first sectors of the track were slipped: it begins `turns` later than predicted.
    LeadingSlip { turns: f64 },
    /// Another surface begins; `sectors` of its first track if that was located, which then matches no known shape.
    NewSurface { sectors: Option<u64> },
    /// A zone of another density begins, and matches no known shape.
    NewZone,
    /// The track ends without a break of the angles after about `sectors`: its run has no skew.
    Unskewed { sectors: u64 },
}

/// A track that was located where an alignment predicts another.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocatedTrack {
    pub(super) predicted: u64,
    pub(super) sectors: u64,
    /// Whether angles break at its end.
    pub(super) breaks: bool,
    /// Whether the alignment matched more than its first track.
    pub(super) is_established: bool,
    /// Whether the alignment has a part that begins with it.
    pub(super) begins_part: bool,
    /// Sectors of the tracks just before it.
    pub(super) before: Option<u64>,
}

/// The start of the track behind a located one.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextTrack {
    /// Turns by which it begins later than predicted.
    pub(super) off: f64,
    /// Tolerances of a predicted angle, and of a single one.
    pub(super) width: f64,
    pub(super) tolerance: f64,
    /// Whether the pattern is a single track.
    pub(super) is_single: bool,
    /// Whether slips may hide its first sector: the track before has some, or the pattern's part continues.
    pub(super) may_slip: bool,
}

impl Hypothesis {
    /// Whether the next track is known to match no earlier shape.
    pub(super) fn excludes_known_shapes(&self) -> bool {
        matches!(
            self,
            Hypothesis::NewZone | Hypothesis::Unskewed { .. } | Hypothesis::NewSurface { sectors: Some(_) }
        )
    }

    /// Explains the number of sectors of a track.
    pub(super) fn of_track(track: &LocatedTrack) -> Hypothesis {
        let sectors = track.sectors;
        if sectors == track.predicted {
            return Hypothesis::Pattern;
        }
        let is_other_surface = track.begins_part || track.before == Some(sectors);
        match track.is_established {
            false => Hypothesis::Slip { sectors },
            // Slips make no track longer.
            true if sectors > track.predicted => Hypothesis::NewSurface { sectors: Some(sectors) },
            true if !track.breaks => Hypothesis::Unskewed { sectors },
            true if is_other_surface => Hypothesis::NewSurface { sectors: Some(sectors) },
            true => Hypothesis::Slip { sectors },
        }
    }

    /// What follows a track with slips.
    pub(super) fn of_next(next: &NextTrack) -> Hypothesis {
        match next.off.abs() {
            off if off > next.width && next.may_slip => Hypothesis::LeadingSlip { turns: next.off },
            off if off > next.width => Hypothesis::NewSurface { sectors: None },
            // The skew differs slightly from that of the alignment.
            off if next.is_single && off > next.tolerance => Hypothesis::NewSurface { sectors: None },
            _ => Hypothesis::Pattern,
        }
    }

    /// Whether a track that begins `off` turns from its prediction has leading slips.
    pub(super) fn of_beginning(off: f64, tolerance: f64) -> Hypothesis {
        let (turns, least) = (wrap_from(0.0, off), LEAST_SLIPPED * tolerance);
        if turns >= least && turns <= 1.0 - least {
            Hypothesis::LeadingSlip { turns }
        } else {
            Hypothesis::NewSurface { sectors: None }
        }
    }

    /// What follows a track with leading slips: the next begins `off_predicted` turns from its prediction, and `off_same` turns from the
    /// angle at which the track with the slips began.
    pub(super) fn after_leading_slip(off_predicted: f64, off_same: f64, width: f64) -> Hypothesis {
        match (wrap(off_predicted).abs() <= width, wrap(off_same).abs() <= width) {
            (true, _) => Hypothesis::Pattern,
            (false, true) => Hypothesis::LeadingSlip { turns: wrap_from(0.0, off_predicted) },
            (false, false) => Hypothesis::NewSurface { sectors: None },
        }
    }

    /// Whether the offset at the farther of [`DENSITY_PLACES`] is large enough for another density.
    pub(super) fn may_be_new_zone(far: f64, tolerance: f64) -> bool {
        far.abs() >= LEAST_OFF * tolerance && far >= -MOST_EARLIER
    }

    /// Whether the offsets at both [`DENSITY_PLACES`] show another density: then they are proportional to the distance. Slips never move a
    /// sector to an earlier angle, and they move it to a later one abruptly.
    pub(super) fn is_new_zone(far: f64, near: f64, tolerance: f64) -> bool {
        let (most, share) = PROPORTIONAL;
        let within = if far < 0.0 { most * tolerance } else { (most * tolerance).min(share * far) };
        (near - 0.5 * far).abs() < within && (far < 0.0 || far > LEAST_LATER * tolerance)
    }

    /// The sector whose angle distinguishes a full track of `sectors`, fewer than predicted, from one with slips, and its turns
    /// from the first; `None` if no angle does. Slips move the angle of the middle sector by half of the difference.
    pub(super) fn middle_of_full_track(
        predicted: &Shape,
        sectors: u64,
        tolerance: f64,
    ) -> Option<(u64, f64)> {
        let lost = predicted.turn - sectors as f64;
        let middle = sectors / 2;
        let shows = lost >= 0.0 && 0.5 * lost / predicted.turn >= BREAK * tolerance;
        shows.then_some((middle, middle as f64 / sectors as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Hypothesis::{LeadingSlip, NewSurface, NewZone, Pattern, Slip, Unskewed};

    const TOLERANCE: f64 = 0.001;

    #[test]
    fn located_track_is_explained_by_its_sectors_and_end() {
        let usual = LocatedTrack {
            predicted: 100,
            sectors: 98,
            breaks: true,
            is_established: true,
            begins_part: false,
            before: Some(100),
        };
        let surface = |sectors| NewSurface { sectors: Some(sectors) };
        for (track, expected) in [
            (LocatedTrack { sectors: 100, ..usual }, Pattern),
            (usual, Slip { sectors: 98 }),
            (LocatedTrack { sectors: 101, ..usual }, surface(101)),
            (LocatedTrack { breaks: false, ..usual }, Unskewed { sectors: 98 }),
            (LocatedTrack { begins_part: true, ..usual }, surface(98)),
            (LocatedTrack { before: Some(98), ..usual }, surface(98)),
            (LocatedTrack { before: None, ..usual }, Slip { sectors: 98 }),
            // An alignment of one track predicts nothing of the next.
            (LocatedTrack { is_established: false, sectors: 101, ..usual }, Slip { sectors: 101 }),
            (LocatedTrack { is_established: false, breaks: false, ..usual }, Slip { sectors: 98 }),
        ] {
            assert_eq!(Hypothesis::of_track(&track), expected, "{track:?}");
        }
    }

    #[test]
    fn track_behind_slips_continues_the_pattern_or_ends_it() {
        let usual =
            NextTrack { off: 0.0, width: 0.0024, tolerance: TOLERANCE, is_single: true, may_slip: true };
        let surface = NewSurface { sectors: None };
        for (next, expected) in [
            (usual, Pattern),
            (NextTrack { off: -0.0009, ..usual }, Pattern),
            (NextTrack { off: 0.002, ..usual }, surface),
            (NextTrack { off: 0.002, is_single: false, ..usual }, Pattern),
            (NextTrack { off: 0.01, ..usual }, LeadingSlip { turns: 0.01 }),
            (NextTrack { off: 0.01, may_slip: false, ..usual }, surface),
        ] {
            assert_eq!(Hypothesis::of_next(&next), expected, "{next:?}");
        }
    }

    #[test]
    fn leading_slips_end_where_a_track_begins_as_predicted() {
        let surface = NewSurface { sectors: None };
        for (off, expected) in [
            (0.01, LeadingSlip { turns: 0.01 }),
            (-0.25, LeadingSlip { turns: 0.75 }),
            (0.001, surface),
            (-0.001, surface),
        ] {
            assert_eq!(Hypothesis::of_beginning(off, TOLERANCE), expected, "{off}");
        }
        for (predicted, same, expected) in [
            (0.001, 0.2, Pattern),
            (1.001, 0.2, Pattern),
            (0.25, 0.001, LeadingSlip { turns: 0.25 }),
            (0.25, 0.1, surface),
        ] {
            assert_eq!(Hypothesis::after_leading_slip(predicted, same, 0.0024), expected, "{predicted}");
        }
    }

    #[test]
    fn density_is_told_from_slips_by_proportional_offsets() {
        for (far, near, may, is) in [
            (0.001, 0.0005, false, false),
            (0.01, 0.005, true, true),
            // All of the slip lies between the two places, or before both.
            (0.01, 0.0, true, false),
            (0.01, 0.01, true, false),
            // A small offset to a later angle may be a slip; to an earlier one it is none.
            (0.003, 0.0015, true, false),
            (-0.003, -0.0015, true, true),
            (-0.3, -0.15, false, true),
        ] {
            assert_eq!(Hypothesis::may_be_new_zone(far, TOLERANCE), may, "{far}");
            assert_eq!(Hypothesis::is_new_zone(far, near, TOLERANCE), is, "{far}, {near}");
        }
    }

    #[test]
    fn middle_of_full_track_is_read_where_it_tells() {
        let shape = Shape { sectors: 100, turn: 100.0, skew: 0.1 };
        for (sectors, expected) in [(100, None), (101, None), (90, Some((45, 0.5)))] {
            assert_eq!(Hypothesis::middle_of_full_track(&shape, sectors, TOLERANCE), expected, "{sectors}");
        }
    }

    #[test]
    fn examined_tracks_exclude_known_shapes() {
        for (hypothesis, excludes) in [
            (Pattern, false),
            (Slip { sectors: 9 }, false),
            (LeadingSlip { turns: 0.1 }, false),
            (NewSurface { sectors: None }, false),
            (NewSurface { sectors: Some(9) }, true),
            (NewZone, true),
            (Unskewed { sectors: 9 }, true),
        ] {
            assert_eq!(hypothesis.excludes_known_shapes(), excludes, "{hypothesis:?}");
        }
    }
}
