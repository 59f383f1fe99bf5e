//! The Maxtor Atlas 10K V, with the layout that was extracted from the drive: 586 million blocks on 644,096 tracks.
//!
//! The entries of the original file are evaluated by the rules of their format. They must agree with the geometry built from [`Extents`].
//!
//! [`Extents`]: headstack_model::spec::Extents

use crate::laws::{any_drive, apart};
use headstack_model::spec::{ExtentRun, Extents, GeometrySpec, Layout, Repeated, TrackKind};
use headstack_model::{Angle, DriveSpec, Geometry, Lbn, Place};

/// An entry of a node: `lbn, cyl, angle, length, cyl length, angle length, run, cyl run, kind, child[, head]`.
#[derive(Clone, Copy, Debug)]
struct Entry {
    numbers: [f64; 8],
    child: usize,
    /// The head; only in an entry for a track.
    head: Option<u32>,
}

/// The numbers and words of a list in the file, without commas but with inner brackets.
fn list<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let start = text.find(&format!("{name} = [")).unwrap_or_else(|| panic!("{name} is in the file"));
    let body = &text[start + name.len() + 3..];
    let mut depth = 0;
    let end = body.find(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        depth == 0
    });
    let body = &body[1..end.expect("brackets match")];
    body.split([' ', ',', '\n', '\r', '\t']).filter(|word| !word.is_empty()).collect()
}

fn number(word: &str) -> f64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is a number"))
}

fn nodes(text: &str) -> Vec<Vec<Entry>> {
    let words = list(text, "IDX");
    let nodes =
        words.split(|word| *word == "]").map(|node| node.iter().filter(|word| **word != "[").copied());
    let mut all = Vec::new();
    for node in nodes {
        let words: Vec<&str> = node.collect();
        let (mut entries, mut at) = (Vec::new(), 0);
        while at < words.len() {
            let track = words[at + 8] == "TRACK";
            let numbers = std::array::from_fn(|index| number(words[at + index]));
            let head = track.then(|| number(words[at + 10]) as u32);
            entries.push(Entry { numbers, child: number(words[at + 9]) as usize, head });
            at += if track { 11 } else { 10 };
        }
        if !entries.is_empty() {
            all.push(entries);
        }
    }
    all
}

fn kinds(text: &str) -> Vec<TrackKind> {
    let numbers: Vec<u32> = list(text, "TP").into_iter().map(|word| number(word) as u32).collect();
    let kind =
        |k: &[u32]| TrackKind { first_sector: k[0], sectors: k[1] + 1 - k[0], sectors_per_track: k[2] };
    numbers.chunks(3).map(kind).collect()
}

fn slips(text: &str) -> Vec<(u64, u64)> {
    let numbers: Vec<u64> = list(text, "Slips").into_iter().map(|word| number(word) as u64).collect();
    numbers.chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

fn extents(nodes: &[Vec<Entry>], tracks: Vec<TrackKind>, slips: Vec<(u64, u64)>) -> Extents {
    let run = |entry: &Entry| {
        let [_, cylinder, angle, length, cylinder_length, angle_length, run, cylinder_run] = entry.numbers;
        let child = entry.child as u32;
        ExtentRun {
            of: entry.head.map_or(Repeated::Group(child), |head| Repeated::Track { head, kind: child }),
            times: (run / length) as u32,
            cylinder: cylinder as i32,
            cylinder_step: (cylinder_length * cylinder_run.signum()) as i32,
            angle_turns: angle,
            angle_step_turns: angle_length,
        }
    };
    let groups = nodes.iter().map(|node| node.iter().map(run).collect()).collect();
    Extents { tracks, groups, slips, remaps: Vec::new() }
}

/// The place of a block by the file's entries, found by descending from the last node.
fn evaluate(nodes: &[Vec<Entry>], kinds: &[TrackKind], slips: &[(u64, u64)], lbn: u64) -> (Place, u32) {
    let mut place = lbn;
    for (first, count) in slips {
        if *first > place {
            break;
        }
        place += count;
    }
    let (mut node, mut rest, mut cylinder, mut turns) = (nodes.len() - 1, place as f64, 0.0, 0.0);
    loop {
        let holds = |entry: &&Entry| entry.numbers[0] <= rest && rest < entry.numbers[0] + entry.numbers[6];
        let entry = nodes[node].iter().find(holds).expect("every place has an entry");
        let [first, from, angle, length, cylinder_length, angle_length, _, cylinder_run] = entry.numbers;
        let times = ((rest - first) / length).floor();
        rest -= first + times * length;
        cylinder += from + times * cylinder_length * cylinder_run.signum();
        turns += angle + times * angle_length;
        let Some(head) = entry.head else {
            node = entry.child;
            continue;
        };
        let kind = kinds[entry.child];
        let sector = kind.first_sector + rest as u32;
        let angle = Angle::from_turns(turns + rest / f64::from(kind.sectors_per_track));
        return (Place { cylinder: cylinder as u32, head, sector, angle }, kind.sectors_per_track);
    }
}

#[test]
fn maxtor_layout_matches_the_entries_of_its_file() {
    let file = "disksim/specs/maxtor300g-layout.model";
    let Some(path) = headstack_prerequisites::reference_data(file) else { return };
    let text = std::fs::read_to_string(path).expect("the reference has the file");
    let (nodes, kinds, slips) = (nodes(&text), kinds(&text), slips(&text));
    assert_eq!(nodes.iter().map(Vec::len).sum::<usize>(), 22_403, "entries of the file");
    let any = any_drive();
    let geometry = GeometrySpec {
        heads: 8,
        cylinders: 80_513,
        layout: Layout::Extents,
        zones: Vec::new(),
        extents: Some(extents(&nodes, kinds.clone(), slips.clone())),
        ..any.geometry
    };
    let drive = DriveSpec { capacity_sectors: 585_937_500, geometry, ..any_drive() };
    let drive = DriveSpec::parse(&drive.to_toml(), "written").unwrap_or_else(|error| panic!("{error}"));
    let geometry = Geometry::new(&drive).unwrap_or_else(|error| panic!("{error}"));

    let around_slips = slips.iter().step_by(97).flat_map(|(place, _)| place - 3..place + 3);
    let spread = (0..2000u64).map(|step| step * 292_968 + step % 1000);
    for lbn in around_slips.chain(spread).chain([585_937_499]) {
        let (expected, sectors_per_track) = evaluate(&nodes, &kinds, &slips, lbn);
        let place = geometry.locate(Lbn(lbn));
        assert_eq!(
            (place.cylinder, place.head, place.sector),
            (expected.cylinder, expected.head, expected.sector)
        );
        assert!(apart(place.angle, expected.angle) <= 2, "block {lbn}: {place:?} instead of {expected:?}");
        assert_eq!(geometry.lbn_at(place.cylinder, place.head, place.sector), Some(Lbn(lbn)));
        let extent = geometry.extent_at(Lbn(lbn));
        assert_eq!(extent.sectors_per_track, sectors_per_track);
        assert!((extent.first.0..extent.first.0 + u64::from(extent.sectors)).contains(&lbn));
    }
    walk(&geometry);
}

/// Extents and tracks tile the whole disk.
fn walk(geometry: &Geometry) {
    let (mut next, mut tracks) = (Lbn(0), 0);
    while next.0 < geometry.sectors() {
        let track = geometry.track_at(next);
        assert_eq!(track.first, next);
        assert!(track.sectors > 0 && track.sectors <= track.sectors_per_track, "{track:?}");
        let end = next + u64::from(track.sectors);
        while next < end {
            let extent = geometry.extent_at(next);
            assert_eq!((extent.first, extent.cylinder, extent.head), (next, track.cylinder, track.head));
            next = next + u64::from(extent.sectors);
        }
        assert_eq!(next, end, "extents end with their track");
        tracks += 1;
    }
    assert!((600_000..=644_104).contains(&tracks), "{tracks} tracks");
}
