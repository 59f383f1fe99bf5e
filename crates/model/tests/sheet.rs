//! Drive files made from data sheets: they are valid, reproduce the sheet's figures, and name the source of each number.

mod sources;

use headstack_model::firmware::Recording;
use headstack_model::sheet::DataSheet;
use headstack_model::spec::{DriveSpec, Interface, ReadAhead, Tagging, WriteCache};
use headstack_model::{Geometry, Lbn, Mechanics, TrackPlace};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// A sheet with the figures that every data sheet has.
fn sheet(capacity_bytes: u64, rpm: f64, mb_s: f64, seek_ms: f64) -> DataSheet {
    DataSheet {
        name: "from-a-sheet".to_string(),
        title: "From a sheet".to_string(),
        capacity_bytes,
        rpm,
        mb_s,
        seek_ms,
        inner_mb_s: None,
        heads: None,
        track_to_track_ms: None,
        full_stroke_ms: None,
        write_seek_ms: None,
        cache_bytes: None,
        write_cache: None,
        interface: None,
        interface_mb_s: None,
        queue_depth: None,
        sector_bytes: None,
        physical_sector_bytes: None,
        year: None,
        recording: Recording::Conventional,
        firmware: None,
    }
}

/// The drive made from a sheet, and its file, which must pass every check without a note.
fn drive(sheet: &DataSheet) -> (DriveSpec, Geometry, String) {
    let text = sheet.drive_file().unwrap_or_else(|error| panic!("{sheet:?}: {error}"));
    let spec = DriveSpec::parse(&text, "sheet.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let geometry = Geometry::new(&spec).expect("the file was checked");
    assert_eq!(spec.notes(&geometry, &text, "sheet.toml"), []);
    assert_eq!(sources::unsourced(&text), Vec::<String>::new(), "{text}");
    (spec, geometry, text)
}

/// Sustained rate in MB/s from a block on, over up to 2,000 tracks of one zone, including the turns lost to skews.
fn sustained(spec: &DriveSpec, geometry: &Geometry, from: Lbn) -> f64 {
    let (mut sectors, mut turns, mut next) = (0, 0.0, from);
    let dense = geometry.track_at(from).sectors_per_track;
    for _ in 0..2000 {
        let track = geometry.track_at(next);
        let end = Lbn(track.first.0 + u64::from(track.sectors));
        if end.0 >= geometry.sectors() || track.sectors_per_track != dense {
            break;
        }
        let read = f64::from(track.sectors) / f64::from(track.sectors_per_track);
        let [here, there] = [track.first, end].map(|lbn| geometry.extent_at(lbn).angle);
        turns += read + ((there - here).as_turns() - read + 1e-6).rem_euclid(1.0) - 1e-6;
        sectors += u64::from(track.sectors);
        next = end;
    }
    let turn_s = Mechanics::new(spec).spindle().period().as_secs();
    sectors as f64 * f64::from(spec.sector_bytes) / (turns * turn_s) / 1e6
}

/// Mean seek time of a read between random cylinders.
fn average_seek(spec: &DriveSpec) -> f64 {
    let mechanics = Mechanics::new(spec);
    let cylinders = spec.geometry.cylinders;
    let (mut sum, mut weights) = (0.0, 0.0);
    for distance in (1..cylinders).step_by((cylinders / 20_000).max(1) as usize) {
        let to = TrackPlace { cylinder: distance, ..TrackPlace::default() };
        let weight = f64::from(cylinders - distance);
        sum += weight * mechanics.reposition(TrackPlace::default(), to, false).as_ms();
        weights += weight;
    }
    sum / weights
}

#[track_caller]
fn near(found: f64, wanted: f64, share: f64) {
    assert!((found / wanted - 1.0).abs() <= share, "{found}, wanted {wanted}");
}

#[test]
fn sheet_of_2019_becomes_a_drive_with_its_figures() {
    let mut sheet = sheet(10_000_000_000_000, 7200.0, 215.0, 8.5);
    (sheet.heads, sheet.cache_bytes) = (Some(14), Some(256 << 20));
    let (spec, geometry, text) = drive(&sheet);
    assert_eq!(spec.capacity_bytes(), 10_000_000_000_000);
    assert_eq!((spec.geometry.heads, spec.mechanics.rpm), (14, 7200.0));
    near(sustained(&spec, &geometry, Lbn(0)), 215.0, 0.005);
    near(average_seek(&spec), 8.5, 0.005);
    assert_eq!(
        (spec.bus.interface, spec.tagging(), spec.queue.depth),
        (Some(Interface::Sata), Tagging::Ncq, 32)
    );
    assert_eq!((spec.cache.read_ahead, spec.cache.write_cache), (ReadAhead::Segment, WriteCache::Full));
    assert_eq!(u64::from(spec.cache.segments) * u64::from(spec.cache.segment_sectors) * 512, 256 << 20);
    assert!(text.contains("\nheads = 14 # given\n"), "{text}");
    assert!(text.contains("\ndepth = 32 # assumption: "), "{text}");
}

#[test]
fn sheet_of_1998_becomes_a_head_first_drive() {
    let mut sheet = sheet(9_100_000_000, 10_000.0, 15.6, 5.4);
    (sheet.interface, sheet.heads) = (Some(Interface::Scsi), Some(12));
    let (spec, geometry, _) = drive(&sheet);
    assert_eq!(geometry.track_at(Lbn(0)).cylinder, geometry.track_at(Lbn(400)).cylinder);
    let cylinders = spec.geometry.cylinders;
    assert!((5000..10_000).contains(&cylinders), "{cylinders} cylinders; the Cheetah 9LP has 6,962");
    assert_eq!((spec.tagging(), spec.cache.write_cache), (Tagging::Tcq, WriteCache::None));
    near(sustained(&spec, &geometry, Lbn(0)), 15.6, 0.005);
}

#[test]
fn rounding_makes_no_write_seek_shorter_than_a_read_seek() {
    let (next_ms, average_ms) = (1.51305868, 16.65721983);
    let same = DataSheet {
        track_to_track_ms: Some(next_ms),
        write_seek_ms: Some(average_ms),
        ..sheet(398_107_170, 3600.0, 2.72, average_ms)
    };
    let (spec, ..) = drive(&same);
    let seek = spec.mechanics.seek.sheet.expect("a sheet's seeks are in the file as they are");
    assert_eq!(seek.write_single_track_ms, Some(next_ms));
}

#[test]
fn impossible_figures_are_rejected_with_the_allowed_range() {
    let usual = sheet(10_000_000_000_000, 7200.0, 215.0, 8.5);
    let said = |change: &dyn Fn(&mut DataSheet)| {
        let mut sheet = usual.clone();
        change(&mut sheet);
        sheet.drive_file().expect_err("no drive is so").to_string()
    };
    assert_eq!(said(&|sheet| sheet.rpm = 72.0), "speed: 72 is outside 1000 to 30000 rpm");
    assert_eq!(said(&|sheet| sheet.inner_mb_s = Some(300.0)), "inner rate: 300 is outside 43 to 215 MB/s");
    assert!(said(&|sheet| sheet.full_stroke_ms = Some(9.0)).starts_with("average seek: 8.5 is outside "));
    assert!(said(&|sheet| sheet.write_seek_ms = Some(8.0)).starts_with("write seek: 8 is outside 8.5 to "));
    assert!(
        said(&|sheet| (sheet.rpm, sheet.mb_s) = (3600.0, 2000.0)).starts_with("rate: 2000 is outside 0 to ")
    );
    assert!(said(&|sheet| sheet.heads = Some(0)).starts_with("heads: 0 is outside 1 to 64 heads"));
    assert!(said(&|sheet| sheet.rpm = f64::NAN).starts_with("speed: NaN is outside "));
    let small =
        sheet(2_000_000, 7200.0, 215.0, 8.5).drive_file().expect_err("a track holds more").to_string();
    assert!(
        small.starts_with("capacity: 2000000 is outside ") && small.contains("64 to 10,000,000 tracks"),
        "{small}"
    );
}

/// Plausible drives: the media rate follows the square root of the capacity, within a factor of 2.5.
fn sheets() -> impl Strategy<Value = DataSheet> {
    let figures = (8.6f64..13.4, 3600f64..15_000.0, 0.4f64..2.5, 3f64..20.0, 0.4f64..=1.0);
    let options = (
        proptest::option::of(1u32..20),
        proptest::option::of(0.02f64..0.12),
        proptest::option::of(1.8f64..2.2),
        proptest::option::of(0.0f64..2.0),
        proptest::option::of(15u32..29),
        proptest::option::of(any::<bool>()),
        proptest::option::of(proptest::sample::select(&Interface::ALL[..])),
        proptest::sample::select(&[None, Some((512, 512)), Some((512, 4096)), Some((4096, 4096))][..]),
    );
    (figures, options).prop_map(|((digits, rpm, fast, seek_ms, inner), options)| {
        let (heads, next, full, settle, cache, write_cache, interface, sectors) = options;
        // Rates rose with about the square root of the capacity: 2 MB/s at 1 GB, 215 MB/s at 10 TB.
        let sectors = sectors.filter(|_| digits > 11.0);
        let mb_s = 2.0 * 10f64.powf((digits - 9.0) / 2.0) * fast;
        DataSheet {
            inner_mb_s: Some(inner * mb_s),
            heads,
            track_to_track_ms: next.map(|share| share * seek_ms),
            full_stroke_ms: full.map(|share| share * seek_ms),
            write_seek_ms: settle.map(|settle| seek_ms + settle),
            cache_bytes: cache.map(|digits| 1 << digits),
            write_cache,
            interface,
            sector_bytes: sectors.map(|(logical, _)| logical),
            physical_sector_bytes: sectors.map(|(_, physical)| physical),
            ..sheet(10f64.powf(digits) as u64, rpm, mb_s, seek_ms)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn every_sheet_becomes_a_drive_with_its_capacity_rate_and_seek(sheet in sheets()) {
        let made = sheet.drive_file();
        prop_assume!(made.is_ok());
        let (spec, geometry, _) = drive(&sheet);
        near(spec.capacity_bytes() as f64, sheet.capacity_bytes as f64, 1e-3);
        near(sustained(&spec, &geometry, Lbn(0)), sheet.mb_s, 0.01);
        near(average_seek(&spec), sheet.seek_ms, 0.01);
        let written = spec.cache.write_cache == WriteCache::Full;
        prop_assert_eq!(written, sheet.write_cache.unwrap_or(spec.tagging() == Tagging::Ncq));
        prop_assert!(sheet.interface.is_none_or(|interface| spec.bus.interface == Some(interface)));
    }
}

#[test]
fn most_plausible_sheets_are_accepted() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut refused = Vec::new();
    for _ in 0..300 {
        let sheet = sheets().new_tree(&mut runner).expect("sheets are drawn").current();
        refused.extend(sheet.drive_file().err().map(|error| error.to_string()));
    }
    assert!(refused.len() < 60, "{} of 300: {refused:#?}", refused.len());
}
