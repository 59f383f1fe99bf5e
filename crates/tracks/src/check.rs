//! Compares a map with the true boundaries.

use crate::{Track, TrackMap};

/// Differences between a map and the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// True boundaries.
    pub boundaries: u64,
    /// True boundaries that the map lacks.
    pub missed: u64,
    /// Boundaries of the map that are not true.
    pub false_ones: u64,
}

impl Agreement {
    /// Share of the true boundaries that the map has.
    pub fn exact_share(&self) -> f64 {
        1.0 - self.missed as f64 / self.boundaries.max(1) as f64
    }
}

/// Compares the starts of all tracks but the first.
pub fn compare(map: &TrackMap, truth: &TrackMap) -> Agreement {
    let mut agreement = Agreement { boundaries: truth.tracks().saturating_sub(1), ..Agreement::default() };
    if map == truth {
        return agreement;
    }
    let (mut found, mut real) = (map.iter().skip(1).peekable(), truth.iter().skip(1).peekable());
    loop {
        let (a, b) = (found.peek().map(begin), real.peek().map(begin));
        match (a, b) {
            (None, None) => return agreement,
            (Some(a), Some(b)) if a == b => {
                found.next();
                real.next();
            }
            (Some(a), b) if b.is_none_or(|b| a < b) => {
                agreement.false_ones += 1;
                found.next();
            }
            _ => {
                agreement.missed += 1;
                real.next();
            }
        }
    }
}

fn begin(track: &Track) -> u64 {
    track.first.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(tracks: &[u32]) -> TrackMap {
        let mut map = TrackMap::new();
        for sectors in tracks {
            map.push(*sectors, 1);
        }
        map
    }

    #[test]
    fn missed_and_false_boundaries_are_counted() {
        let truth = map(&[10, 10, 9, 10]);
        let expect = |missed, false_ones| Agreement { boundaries: 3, missed, false_ones };
        assert_eq!(compare(&truth, &truth), expect(0, 0));
        assert_eq!(compare(&map(&[10, 10, 10, 9]), &truth), expect(1, 1));
        assert_eq!(compare(&map(&[10, 29]), &truth), expect(2, 0));
        assert_eq!(compare(&map(&[5, 5, 10, 9, 10]), &truth), expect(0, 1));
        assert_eq!(compare(&map(&[]), &truth), expect(3, 0));
    }
}
