//! The shipped classes of firmware: each file alone, and as the firmware of drives.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

mod sources;

use headstack_model::firmware::{self, FirmwareClass, Recording};
use headstack_model::sheet::DataSheet;
use headstack_model::spec::{DriveSpec, Interface, lay};
use headstack_model::{SpecError, drives};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The classes with the texts of their files.
fn classes() -> impl Iterator<Item = (FirmwareClass, &'static str)> {
    let load = |name: &str| firmware::load(name).unwrap_or_else(|error| panic!("{error}"));
    firmware::all().iter().map(move |(name, text)| (load(name), *text))
}

fn parsed(text: &str, origin: &str) -> DriveSpec {
    DriveSpec::parse(text, origin).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The drive file that `headstack drive new --firmware` writes for a class.
fn made(class: &FirmwareClass) -> String {
    let (gigabytes, mb_s) = if class.queued { (8000, 200.0) } else { (100, 60.0) };
    let sheet = DataSheet {
        name: "made".to_string(),
        title: "Made".to_string(),
        capacity_bytes: gigabytes * 1_000_000_000,
        rpm: 7200.0,
        mb_s,
        seek_ms: 8.5,
        inner_mb_s: None,
        heads: None,
        track_to_track_ms: None,
        full_stroke_ms: None,
        write_seek_ms: None,
        cache_bytes: None,
        write_cache: Some(true),
        interface: class.interfaces.first().copied(),
        interface_mb_s: None,
        queue_depth: Some(if class.queued { 32 } else { 1 }),
        sector_bytes: None,
        physical_sector_bytes: None,
        year: None,
        recording: class.recording,
        firmware: Some(class.name.clone()),
    };
    sheet.drive_file().unwrap_or_else(|error| panic!("{}: {error}", class.name))
}

#[test]
fn every_class_file_is_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../firmware");
    let entries = std::fs::read_dir(folder).expect("the workspace has a folder `firmware`");
    let files =
        entries.map(|entry| entry.expect("a readable entry").file_name().to_string_lossy().into_owned());
    let names: BTreeSet<String> =
        files.filter_map(|file| file.strip_suffix(".toml").map(str::to_string)).collect();
    let listed: BTreeSet<String> = firmware::all().iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, listed);
}

/// The schema of the key of a drive file at a path such as `queue.committed`.
fn schema_of<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(root, |table, key| resolved(root, table).get("properties")?.get(key))
}

/// The schema to which a reference points, also from a table that may be absent.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let schema = schema.pointer("/anyOf/0").unwrap_or(schema);
    let target = schema["$ref"].as_str().and_then(|place| root.pointer(place.strip_prefix('#')?));
    target.unwrap_or(schema)
}

#[test]
fn every_key_of_a_class_is_a_key_of_the_drive_file() {
    let schema = DriveSpec::json_schema().to_value();
    assert!(schema_of(&schema, "overhead.after_read.read_hit_ms").is_some());
    assert!(schema_of(&schema, "shingled.map_save_ms").is_some());
    assert!(schema_of(&schema, "queue.comitted").is_none());
    for (class, _) in classes() {
        for key in class.keys() {
            assert!(schema_of(&schema, &key.path).is_some(), "firmware/{}.toml: {}", class.name, key.path);
        }
    }
}

#[test]
fn every_number_of_a_class_names_its_source() {
    let unsourced = |(name, text): &(&str, &str)| {
        let lines = sources::unsourced(text);
        lines.into_iter().map(|line| format!("firmware/{name}.toml:{line}")).collect::<Vec<_>>()
    };
    let wrong: Vec<String> = firmware::all().iter().flat_map(unsourced).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What readers of a class get as the source of a number.
    for (class, _) in classes() {
        for key in class.keys().iter().filter(|key| !key.value.is_str() && !key.value.is_bool()) {
            assert!(key.source.is_some(), "firmware/{}.toml: {}", class.name, key.path);
        }
    }
}

/// The words that stand alone in parentheses, which are the names of sources.
fn references(comment: &str) -> Vec<&str> {
    let groups = comment.split('(').skip(1).filter_map(|rest| rest.split_once(')'));
    groups.map(|(group, _)| group).filter(|group| group.chars().all(char::is_alphanumeric)).collect()
}

#[test]
fn source_references_and_sources_belong_together() {
    assert_eq!(references("between 58 (mq) and 10 us (zoned), or (so it is said) not"), ["mq", "zoned"]);
    for (class, text) in classes() {
        let comments: Vec<&str> = text.lines().filter_map(|line| Some(line.rsplit_once('#')?.1)).collect();
        for word in comments.iter().flat_map(|comment| references(comment)) {
            assert!(class.sources.contains_key(word), "firmware/{}.toml has no source `{word}`", class.name);
        }
        for source in class.sources.keys() {
            let is_word = |word: &str| word.trim_end_matches("'s") == source;
            let is_named =
                |comment: &&str| comment.split(|c: char| !c.is_alphanumeric() && c != '\'').any(is_word);
            assert!(
                comments.iter().any(is_named),
                "firmware/{}.toml: no number is from `{source}`",
                class.name
            );
        }
    }
}

#[test]
fn every_class_has_ranges_whose_ends_make_valid_drives() {
    for (class, _) in classes() {
        assert!(!class.range.is_empty(), "{}", class.name);
        let file = made(&class);
        for (path, ends) in &class.range {
            let own = class.number(path).unwrap_or_else(|| panic!("{}: {path}", class.name));
            assert!(ends[0] <= own && own <= ends[1], "{}: {path}: {own} is outside {ends:?}", class.name);
            for end in ends {
                let (table, key) = path.rsplit_once('.').expect("ranges are of keys in tables");
                let mut whole: toml::Table = toml::from_str(&file).expect("it is TOML");
                lay(&mut whole, toml::from_str(&format!("[{table}]\n{key} = {end}\n")).expect("it is TOML"));
                parsed(&toml::to_string(&whole).expect("it is TOML"), &format!("{}: {path}", class.name));
            }
        }
    }
}

#[test]
fn fault_of_a_range_is_rejected_with_its_line() {
    let class = |range: &str| {
        let head =
            "name = \"a\"\ntitle = \"A\"\nmeasured_on = \"\"\nyears = [0, 0]\ninterfaces = [\"sata\"]\n";
        let keys = "recording = \"conventional\"\nqueued = true\n[queue]\ncommitted = 4\n[range]\n";
        FirmwareClass::parse(&format!("{head}{keys}{range}\n"), "f.toml")
            .map_err(|error: SpecError| error.to_string())
    };
    assert!(class("\"queue.committed\" = [1, 4]").is_ok());
    let outside = class("\"queue.committed\" = [1, 3]").expect_err("4 is outside");
    assert!(outside.ends_with("[1, 3] does not have the class's own value, 4"), "{outside}");
    let unknown = class("\"queue.comitted\" = [1, 4]").expect_err("there is no such key");
    assert!(unknown.contains("has no number in this file"), "{unknown}");
}

/// Classes that only the study `everyday` and a user's own files name, because none of their drives is shipped.
const NAMED_ONLY: [&str; 2] = ["hitachi-2005", "seagate-2009"];

#[test]
fn every_class_has_a_drive() {
    let loaded = drives::all().iter().map(|(name, _)| drives::load(name).expect("shipped drives are valid"));
    let used: BTreeSet<String> = loaded.filter_map(|spec| spec.firmware).collect();
    for (class, _) in classes() {
        let [first, last] = class.years;
        let is_usual = (first.max(1)..=last).any(|year| {
            let usual = |interface: &Interface| {
                firmware::usual(year, *interface, class.queued, class.recording) == Some(&class.name)
            };
            class.interfaces.iter().any(usual)
        });
        let has_drive = used.contains(&class.name) || is_usual;
        assert_eq!(has_drive, !NAMED_ONLY.contains(&class.name.as_str()), "{}", class.name);
        assert_eq!(is_usual, class.years != [0, 0], "{}: `drive new` gives it in its years", class.name);
        let spec = parsed(&made(&class), &class.name);
        assert_eq!(spec.firmware.as_ref(), Some(&class.name));
    }
}

#[test]
fn every_shipped_drive_fits_its_class() {
    for (name, _) in drives::all() {
        let spec = drives::load(name).unwrap_or_else(|error| panic!("{error}"));
        let Some(class) = &spec.firmware else { continue };
        let class = firmware::load(class).unwrap_or_else(|error| panic!("{error}"));
        let recording = match (&spec.shingled, &spec.zones) {
            (Some(_), _) => Recording::DriveManaged,
            (None, Some(_)) => Recording::HostManaged,
            (None, None) => Recording::Conventional,
        };
        assert_eq!(recording, class.recording, "{name}: {}", class.name);
        assert_eq!(spec.queue.depth > 1, class.queued, "{name}: {}", class.name);
        let interface = spec.bus.interface.expect("shipped drives have one");
        assert!(class.interfaces.contains(&interface), "{name}: {}", class.name);
    }
}

#[test]
fn written_drive_has_the_class_and_all_its_keys_and_reads_back_equal() {
    let shipped = drives::all().iter().map(|(_, text)| text.to_string());
    for file in shipped.chain(classes().map(|(class, _)| made(&class))) {
        let spec = parsed(&file, "file");
        let written = spec.to_toml();
        assert_eq!(parsed(&written, "written"), spec);
        let keys = firmware::drive_keys(&written, "written").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(keys.is_empty(), spec.firmware.is_none(), "{}", spec.name);
        let from_class: Vec<&String> =
            keys.iter().filter(|key| key.in_file.is_none()).map(|key| &key.path).collect();
        assert!(from_class.is_empty(), "{}: {from_class:?} are not written", spec.name);
    }
}
