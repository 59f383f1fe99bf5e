//! Compression of a map: repeated runs, and exceptions from them.
//!
//! Zones, bands and surfaces repeat a disk's runs: thirty thousand runs of a disk of 20 TB are some fifty times twenty different
//! ones. A map is written as a list of *rules*: a run, or a copy of some earlier runs, which may overlap its own output (so a
//! group of runs that occurs twenty times is one rule). A slipped sector takes one block from one track, and cuts its run in
//! three; such tracks are *exceptions* from a longer run, so that the runs still repeat.
//!
//! *Source:* folding repeated groups of runs is an idea of DIXtrac's layout tools (`layout_g4`), which fold at most two cylinders;
//! the rules are the compression of J. Ziv and A. Lempel (1977), with runs in place of letters.

use super::{Run, TrackMap};
use std::collections::BTreeMap;

/// Maximum number of successive tracks that are exceptions.
const MOST_EXCEPTIONS_TOGETHER: u32 = 16;

/// Equal tracks: sectors of each, and their number.
pub(super) type Shape = (u32, u32);

/// One step of writing a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Run(Shape),
    /// Copies of the runs that begin `back` runs before.
    Again {
        back: u64,
        runs: u64,
    },
}

/// A track that differs from its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exception {
    pub(super) track: u64,
    pub(super) sectors: u32,
}

/// The runs of a map without exceptions.
pub(super) fn plain(runs: &[Run]) -> Vec<Shape> {
    runs.iter().map(|run| (run.sectors, run.tracks)).collect()
}

/// The runs of a map in which a few short tracks between equal ones are exceptions.
pub(super) fn folded(runs: &[Run]) -> (Vec<Shape>, Vec<Exception>) {
    let (mut shapes, mut exceptions): (Vec<Shape>, Vec<Exception>) = (Vec::new(), Vec::new());
    let (mut at, mut track) = (0, 0u64);
    while let Some(run) = runs.get(at) {
        let between = match shapes.last_mut() {
            Some(shape) => fold(shape, &runs[at..]),
            None => 0,
        };
        if between == 0 {
            shapes.push((run.sectors, run.tracks));
            track += u64::from(run.tracks);
            at += 1;
            continue;
        }
        for short in &runs[at..at + between] {
            for _ in 0..short.tracks {
                exceptions.push(Exception { track, sectors: short.sectors });
                track += 1;
            }
        }
        track += u64::from(runs[at + between].tracks);
        at += between + 1;
    }
    (shapes, exceptions)
}

/// Adds short tracks, and the run behind them, to the shape before, if that continues there. Returns the number of short runs.
fn fold(shape: &mut Shape, runs: &[Run]) -> usize {
    let mut tracks = 0;
    for (between, run) in runs.iter().enumerate() {
        if run.sectors == shape.0 {
            let all = shape.1.checked_add(tracks).and_then(|all| all.checked_add(run.tracks));
            let Some(all) = all else { return 0 };
            shape.1 = all;
            return between;
        }
        tracks = run.tracks.saturating_add(tracks);
        if run.sectors > shape.0 || tracks > MOST_EXCEPTIONS_TOGETHER {
            return 0;
        }
    }
    0
}

/// Rules that make the shapes.
pub(super) fn rules(shapes: &[Shape]) -> Vec<Rule> {
    let (mut rules, mut seen) = (Vec::new(), BTreeMap::new());
    let mut at = 0;
    while at < shapes.len() {
        let before = shapes.get(at..at + 2).and_then(|pair| seen.get(pair)).copied();
        let same = before.map_or(0, |before| alike(&shapes[before..], &shapes[at..]));
        let made = match before {
            Some(before) => {
                rules.push(Rule::Again { back: (at - before) as u64, runs: same as u64 });
                same
            }
            None => {
                rules.push(Rule::Run(shapes[at]));
                1
            }
        };
        for place in at..at + made {
            if let Some(pair) = shapes.get(place..place + 2) {
                seen.insert(pair, place);
            }
        }
        at += made;
    }
    rules
}

fn alike(a: &[Shape], b: &[Shape]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The map of shapes and exceptions; the exceptions ascend and lie on the tracks.
pub(super) fn map_of(shapes: &[Shape], exceptions: &[Exception]) -> TrackMap {
    let mut map = TrackMap::new();
    let mut exceptions = exceptions.iter().peekable();
    let mut track = 0u64;
    for (sectors, tracks) in shapes {
        let end = track + u64::from(*tracks);
        while let Some(exception) = exceptions.next_if(|exception| exception.track < end) {
            map.push(*sectors, (exception.track - track) as u32);
            map.push(exception.sectors, 1);
            track = exception.track + 1;
        }
        map.push(*sectors, (end - track) as u32);
        track = end;
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(shapes: &[Shape]) -> TrackMap {
        map_of(shapes, &[])
    }

    #[test]
    fn repeated_group_becomes_one_rule() {
        let group = [(30, 400), (29, 400), (31, 400)];
        let shapes: Vec<Shape> = group.iter().copied().cycle().take(60).collect();
        let rules = rules(&shapes);
        assert_eq!(rules.len(), 4);
        assert_eq!(rules[3], Rule::Again { back: 3, runs: 57 });
    }

    #[test]
    fn slips_are_stored_as_exceptions_and_restored() {
        let whole = map(&[(30, 7), (29, 1), (30, 2), (28, 1), (27, 2), (30, 9), (25, 1), (20, 4), (21, 4)]);
        let (shapes, exceptions) = folded(whole.runs());
        assert_eq!(shapes, [(30, 22), (25, 1), (20, 4), (21, 4)]);
        assert_eq!(exceptions.iter().map(|one| one.track).collect::<Vec<_>>(), [7, 10, 11, 12]);
        assert_eq!(map_of(&shapes, &exceptions), whole);
    }
}
