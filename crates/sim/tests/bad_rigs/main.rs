//! Rigs that are wrong in one place: the error is one line, which names the key and its line.
//!
//! Every key of every shipped rig, and of three that have all keys there are, is wrong in turn: of another type, negative,
//! zero, no number, misspelt, missing, a name that nothing has.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

#[path = "../../../model/tests/spoil/mod.rs"]
mod spoil;

use headstack_model::{DriveSpec, SpecError, drives};
use headstack_sim::rig::{Rig, RigError, all_paths, shipped};
use spoil::{Kind, Leaf, Spoilt, leaves};
use std::collections::{BTreeMap, BTreeSet};

/// Rigs that have all keys there are.
const OWN: [(&str, &str); 4] = [
    ("whole", include_str!("whole.toml")),
    ("others", include_str!("others.toml")),
    ("knowing", include_str!("knowing.toml")),
    ("words", include_str!("words.toml")),
];

fn rigs() -> impl Iterator<Item = (&'static str, &'static str)> {
    shipped::all().iter().copied().chain(OWN)
}

/// Reads rigs; each preset is read once.
#[derive(Default)]
struct Reader(BTreeMap<String, DriveSpec>);

impl Reader {
    fn read(&mut self, text: &str) -> Result<Rig, SpecError> {
        let mut find = |name: &str| {
            if let Some(known) = self.0.get(name) {
                return Ok(known.clone());
            }
            let spec = drives::load(name)?;
            self.0.insert(name.to_string(), spec.clone());
            Ok(spec)
        };
        Rig::parse(text, "x.toml", &mut find).map_err(|RigError::Fault(error)| error)
    }

    /// The text is refused in one line, at the line of the last place where `at` stands, with `names` in it.
    #[track_caller]
    fn must_refuse(&mut self, text: &str, at: &str, names: &str) {
        let line = spoil::line_of(text, text.rfind(at).unwrap_or_else(|| panic!("no `{at}` in it")));
        let names = names.to_string();
        let spoilt = Spoilt { text: text.to_string(), what: text.to_string(), lines: line..line + 1, names };
        spoilt.must_be_refused(self.read(text));
    }
}

/// Every rig is refused, however it is spoilt.
#[track_caller]
fn all_refused(spoilt: impl Fn(&str, &str) -> Vec<Spoilt>) {
    let mut reader = Reader::default();
    let spoilt: Vec<Spoilt> = rigs().flat_map(|(file, text)| spoilt(file, text)).collect();
    spoil::all_refused(&spoilt, |text| reader.read(text));
}

#[test]
fn every_unmodified_rig_builds() {
    for (name, text) in rigs() {
        let rig = Reader::default().read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        rig.build(1).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn test_rigs_cover_every_key() {
    // Without the numbers of tables that stand as a list.
    let plain = |leaf: Leaf| {
        let parts = leaf.path.split(['[', ']']).step_by(2);
        parts.collect::<String>()
    };
    let here: BTreeSet<String> = rigs().flat_map(|(_, text)| leaves(text)).map(plain).collect();
    let drive: BTreeSet<String> = DriveSpec::json_schema().to_value()["properties"]
        .as_object()
        .map(|keys| keys.keys().map(|key| format!("drive.{key}")).collect())
        .unwrap_or_default();
    // The keys of drive files are spoilt where those are read.
    let of_drive =
        |path: &String| drive.iter().any(|key| path == key || path.starts_with(&format!("{key}.")));
    let missing: Vec<String> =
        all_paths().into_iter().filter(|path| !of_drive(path) && !here.contains(path)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn wrong_type_is_rejected_with_key_and_line() {
    all_refused(spoil::other_types);
}

#[test]
fn negative_number_is_rejected_with_key_and_line() {
    all_refused(|file, text| spoil::negative(file, text, &["rpm_deviation_percent"]));
}

#[test]
fn nan_or_huge_number_is_rejected_with_key_and_line() {
    all_refused(spoil::beyond_numbers);
}

#[test]
fn syntax_error_is_rejected_with_its_line() {
    all_refused(spoil::no_toml);
}

#[test]
fn misspelt_key_is_rejected_with_the_right_name() {
    all_refused(spoil::misspelt);
}

/// Keys that may be zero: nothing, never, at once.
const MAY_BE_ZERO: [&str; 53] = [
    "actuator_load_threshold",
    "antic_expire",
    "arbitration_us",
    "at_s",
    "back_seek_max",
    "bypass_bytes",
    "carried_ratio",
    "client_request_us",
    "client_us_per_kib",
    "command_us",
    "copy_us_per_kib",
    "copy_us_per_page",
    "cut_links",
    "delay_us",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
    "fifo_expire_async",
    "fifo_expire_sync",
    "first_lbn",
    "flush_idle_ms",
    "coalesce_ms",
    "guard_cost",
    "guard_threshold",
    "interference_ratio",
    "interrupt_us",
    "max_budget",
    "partition_start",
    "piece_us",
    "prio_aging_expire",
    "program_us_per_byte",
    "protected_ratio",
    "read_ahead_kb",
    "read_batch_expire",
    "read_ahead_sectors",
    "read_expire",
    "read_latency",
    "read_modify_write_ratio",
    "read_us_per_sector",
    "round_trip_us",
    "rpm_deviation_percent",
    "slice_idle",
    "submit_us",
    "system_call_us",
    "unplug_delay",
    "us_per_sector",
    "word_read_us",
    "word_us",
    "word_write_us",
    "write_batch_expire",
    "write_expire",
    "write_latency",
    "write_us_per_sector",
    "writes_starved",
];

#[test]
fn zero_is_rejected_with_key_and_line_unless_allowed() {
    let mut reader = Reader::default();
    for (file, text) in rigs() {
        for leaf in leaves(text).iter().filter(|leaf| leaf.kind == Kind::Number) {
            let spoilt = leaf.set(file, text, "0");
            match (reader.read(&spoilt.text), MAY_BE_ZERO.contains(&leaf.name.as_str())) {
                (Ok(rig), true) => {
                    drop(rig.build(1).unwrap_or_else(|error| panic!("{}: {error}", spoilt.what)))
                }
                (Err(error), true) => panic!("{error}"),
                (read, false) => spoilt.must_be_refused(read),
            }
        }
    }
}

#[test]
fn unknown_key_is_rejected_with_its_line_in_every_table() {
    all_refused(|file, text| {
        let leaves = leaves(text);
        let values =
            leaves.iter().filter(|leaf| leaf.kind != Kind::Table && !leaf.path.starts_with("devices"));
        let unknown = |leaf: &Leaf| {
            let mut spoilt = leaf.renamed(file, text, "zyzzyva");
            // Nothing is like it, so that nothing is suggested in its place.
            spoilt.names = "zyzzyva".to_string();
            Spoilt { what: format!("{}, an unknown key", spoilt.what), ..spoilt }
        };
        values.map(unknown).collect()
    });
}

#[test]
fn unknown_name_is_rejected_with_key_and_line() {
    let free = ["title", "name", "volume"];
    all_refused(|file, text| {
        let leaves = leaves(text);
        let named = leaves.iter().filter(|leaf| !free.contains(&leaf.name.as_str()));
        let spoilt = named.filter_map(|leaf| match leaf.kind {
            Kind::Text => Some(leaf.set(file, text, "\"zyzzyva\"")),
            Kind::Array if text[leaf.value.clone()].contains('"') => {
                Some(leaf.set(file, text, "[\"zyzzyva\"]"))
            }
            _ => None,
        });
        spoilt.collect()
    });
}

#[test]
fn empty_name_is_rejected_with_key_and_line() {
    all_refused(|file, text| {
        let leaves = leaves(text);
        let names = leaves.iter().filter(|leaf| ["name", "volume"].contains(&leaf.name.as_str()));
        names.map(|leaf| leaf.set(file, text, "\"\"")).collect()
    });
}

#[test]
fn missing_key_is_rejected_with_its_table() {
    let needed = ["preset", "organisation", "drives"];
    let mut reader = Reader::default();
    for (file, text) in rigs() {
        for leaf in leaves(text).iter().filter(|leaf| leaf.kind != Kind::Table) {
            let spoilt = leaf.left_out(file, text);
            if needed.contains(&leaf.name.as_str()) {
                spoilt.must_be_refused(reader.read(&spoilt.text))
            } else {
                spoilt.may_be_missed(reader.read(&spoilt.text))
            }
        }
    }
}

#[test]
fn non_table_value_is_rejected_with_key_and_line() {
    let mut reader = Reader::default();
    let lists = ["bus", "controller", "array"];
    let tables = ["drive", "drive.queue", "controller.cache", "devices", "sources", "host", "host.queue"];
    let inner = ["host.queue.cfq", "host.page_cache", "host.interface", "host.processor", "host.clients"];
    for table in lists.iter().chain(&tables).chain(&inner) {
        let name = table.rsplit('.').next().unwrap_or_default();
        let rest = match *table {
            "drive" => "",
            "drive.queue" => "drive.preset = \"hp-c2247a\"",
            _ => "[drive]\npreset = \"hp-c2247a\"",
        };
        for wrong in ["7", "\"all\"", "true", "[]", "[7]", "[[]]"] {
            // Of these there may be none.
            if wrong != "[]" || !lists.contains(table) {
                let text = format!("title = \"x\"\n{table} = {wrong}\n{rest}");
                reader.must_refuse(&text, &format!("{table} ="), name);
            }
        }
    }
}

/// Four drives and what stands behind them.
fn four(after: &str) -> String {
    format!("[drive]\npreset = \"hp-c2247a\"\ncount = 4\nvolume = \"d\"\n{after}")
}

#[test]
fn duplicate_name_is_rejected_at_its_second_use() {
    let mut reader = Reader::default();
    for (table, kind) in [("bus", "buses"), ("controller", "controllers")] {
        let text = four(&format!("[[{table}]]\nname = \"a\"\n[[{table}]]\nname  = \"a\""));
        reader.must_refuse(&text, "name  =", &format!("{table}[1].name: two {kind} are called `a`"));
    }
    let array = "organisation = \"concatenation\"\ndrives = [";
    let text =
        four(&format!("[[array]]\nname = \"a\"\n{array}\"d0\"]\n[[array]]\nname  = \"a\"\n{array}\"d1\"]"));
    reader.must_refuse(&text, "name  =", "array[1].name: two volumes are called `a`");
    let text = four(&format!("[array]\nname  = \"d3\"\n{array}\"d0\"]"));
    reader.must_refuse(&text, "name  =", "array.name: two volumes are called `d3`");
    let one = "[[drive]]\npreset = \"hp-c2247a\"\n";
    let text = format!("{one}volume = \"a\"\n{one}volume  = \"a\"");
    reader.must_refuse(&text, "volume  =", "drive[1].volume: two volumes are called `a`");
    // What has no name written is named where it stands.
    let text = format!("{one}volume = \"disk1\"\n{one}");
    reader.must_refuse(&text, "[[drive]]", "drive[1]");
}

#[test]
fn array_that_does_not_fit_its_drives_is_rejected() {
    let mut reader = Reader::default();
    let mut refused = |keys: &str, at: &str, names: &str| {
        reader.must_refuse(&four(&format!("[array]\n{keys}")), at, names);
    };
    let of = |organisation: &str, drives: &str| {
        format!("organisation = \"{organisation}\"\nstripe_unit_sectors = 8\ndrives = [{drives}]")
    };
    refused(
        &of("striping", "\"d\"").replace("= 8", "= 0"),
        "stripe",
        "array.stripe_unit_sectors: 0 is outside",
    );
    refused(&of("mirroring", "\"d0\", \"d1\", \"d2\""), "drives", "3 drives are no multiple of 2 copies");
    let copies = format!("{}\ncopies = 3", of("mirroring", "\"d\""));
    refused(&copies, "drives", "4 drives are no multiple of 3 copies");
    refused(&format!("{}\ncopies = 1", of("mirroring", "\"d\"")), "copies", "1 is outside 2 to 16");
    refused(&of("raid-5", "\"d0\", \"d1\""), "drives", "`raid-5` needs 3 drives at least, and 2 are named");
    refused(&of("raid-6", "\"d0\", \"d1\", \"d2\""), "drives", "`raid-6` needs 4 drives at least");
    refused(&of("parity-drive", "\"d0\", \"d1\""), "drives", "`parity-drive` needs 3 drives at least");
    refused(&of("chained-declustering", "\"d0\""), "drives", "needs 2 drives at least");
    refused(&of("striping", ""), "drives", "needs 1 drives at least");
    refused(&of("striping", "\"d\", \"d2\""), "drives", "`d2` stands there twice");
    for (organisation, failed) in [
        ("striping", "\"d0\""),
        ("concatenation", "\"d3\""),
        ("mirroring", "\"d0\", \"d2\""),
        ("parity-drive", "\"d0\", \"d1\""),
        ("raid-5", "\"d0\", \"d3\""),
        ("raid-6", "\"d0\", \"d1\", \"d2\""),
        ("chained-declustering", "\"d3\", \"d0\""),
    ] {
        refused(&format!("{}\nfailed = [{failed}]", of(organisation, "\"d\"")), "failed", "array.failed: ");
    }
}

#[test]
fn drive_on_unknown_bus_or_in_two_arrays_is_rejected() {
    let mut reader = Reader::default();
    let text = four("on = \"scsi1\"\n[bus]\nname = \"scsi\"");
    reader.must_refuse(&text, "on = ", "drive.on: no bus is called `scsi1`; did you mean `scsi`?");
    let array = "organisation = \"mirroring\"\ndrives";
    let text = four(&format!(
        "[[array]]\nname = \"a\"\n{array} = [\"d0\", \"d1\"]\n[[array]]\nname = \"b\"\n{array}  = [\"d1\", \"d2\"]"
    ));
    reader.must_refuse(&text, "drives  =", "array[1].drives: `d1` is in another array, too");
    let spare = "failed = [\"d3\"]\nspares  = [\"d0\"]";
    let text = four(&format!(
        "[[array]]\nname = \"a\"\n{array} = [\"d0\", \"d1\"]\n[[array]]\nname = \"b\"\n{array} = [\"d2\", \"d3\"]\n{spare}"
    ));
    reader.must_refuse(&text, "spares  =", "array[1].spares: `d0` is in another array, too");
}

#[test]
fn shingled_bands_that_do_not_fit_their_drive_are_rejected() {
    let mut reader = Reader::default();
    let mut refused = |key: &str, names: &str| {
        let text = format!("[drive]\npreset = \"wd40efax\"\n{key}");
        reader.must_refuse(&text, key, names);
    };
    refused("shingled.cache_sectors = 60000", "shingled.cache_sectors: 60000 is outside ");
    refused("shingled.band_sectors = 0", "shingled.band_sectors: 0 is outside 8 to 4000000 sectors");
    refused(
        "shingled.map_entries_max = 100",
        "shingled.map_entries_max: 100 is outside 256 to 10000000 extents",
    );
    refused("shingled.pieces = 3", "shingled.pieces: a cache at the outer diameter has one");
    refused("shingled.cache_placement = \"inner\"", "shingled.cache_placement");
    refused("cache.buffered = false", "cache.buffered: false: a shingled drive");
    refused("cache.write_cache = \"segment\"", "cache.write_cache: a shingled drive needs");
}

#[test]
fn interference_that_no_disk_with_several_arms_has_is_rejected() {
    let mut reader = Reader::default();
    let mut refused = |keys: &str, key: &str, names: &str| {
        reader.must_refuse(&four(&format!("[array]\ndrives = [\"d\"]\n{keys}\n{key}")), key, names);
    };
    let concatenation = "organisation = \"concatenation\"";
    refused(concatenation, "interference_ratio = 1.5", "array.interference_ratio: 1.5 is outside 0 to 1");
    refused(concatenation, "interference_ratio = -0.1", "array.interference_ratio: -0.1 is outside 0 to 1");
    let striping = "organisation = \"striping\"\nstripe_unit_sectors = 8";
    for other in [striping, "organisation = \"mirroring\""] {
        refused(
            other,
            "interference_ratio = 0.1",
            "array.interference_ratio: is for a disk with several arms",
        );
    }
}

/// Keys that do not apply to the organisation of the array.
#[test]
fn inapplicable_array_key_is_rejected() {
    let mut reader = Reader::default();
    let array = "[array]\norganisation = \"striping\"\nstripe_unit_sectors = 8\ndrives = [\"d\"]\n";
    for key in ["parity_unit_sectors = 8", "read_modify_write_ratio = 0.5", "rebuild_mb_s = 2"] {
        let name = key.split(' ').next().unwrap_or_default();
        reader.must_refuse(&four(&format!("{array}{key}")), key, &format!("array.{name}: is for"));
    }
}

#[test]
fn truncated_rig_parses_or_fails_in_one_line() {
    let mut reader = Reader::default();
    for (file, text) in rigs() {
        for part in spoil::cut_off(text) {
            if let Err(error) = reader.read(part) {
                // That there is no drive has no line.
                if !error.message.starts_with("a rig needs a drive") {
                    assert!(spoil::is_one_line(&error), "{file} up to byte {}: {error}", part.len());
                }
            }
        }
    }
}

#[test]
fn error_line_is_right_despite_special_characters_in_names() {
    let mut reader = Reader::default();
    for device in ["a.b", "a[0]", "a.b[7].c", "", "a b"] {
        let text = four(&format!("[devices]\n\"{device}\" = \"zyzzyva\""));
        reader.must_refuse(
            &text,
            "= \"zyzzyva\"",
            &format!("devices.{device}: no volume is called `zyzzyva`"),
        );
    }
    let text = four("on = \"a\\nb\"");
    reader.must_refuse(&text, "on =", "drive.on: no bus is called `a\\nb`");
    let text = four("[devices]\n\"a\\nb\" = \"zyzzyva\"");
    reader.must_refuse(&text, "= \"zyzzyva\"", "devices.a\\nb: no volume");
}

#[test]
fn accepted_rig_builds_or_fails_in_one_line() {
    let mut reader = Reader::default();
    let mut taken = 0;
    for (file, text) in rigs() {
        for leaf in leaves(text).iter().filter(|leaf| leaf.kind == Kind::Number) {
            for value in ["1", "0.001", "1000000", "4294967295", "1000000000000"] {
                let changed = leaf.set(file, text, value);
                let Ok(rig) = reader.read(&changed.text) else { continue };
                taken += 1;
                if let Err(RigError::Fault(error)) = rig.build(1) {
                    assert!(spoil::is_one_line(&error), "{}: {error}", changed.what);
                }
            }
        }
    }
    assert!(taken > 100, "only {taken} judged");
}
