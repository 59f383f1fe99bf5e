//! Rigs read, set, resolved and refused.

use super::*;
use headstack_model::drives;
use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_workload::{Issue, Load, Poll};

fn parse(text: &str) -> Result<Rig, RigError> {
    Rig::parse(text, "t.toml", &mut |name| drives::load(name))
}

fn rig(text: &str) -> Rig {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

const TWO_KINDS: &str = "\
title = \"two kinds\"

[[drive]]
preset = \"atlas-10k\"
count = 2
queue.depth = 32

[[drive]]
preset = \"hp-c2247a\"
volume = \"old\"
";

#[test]
fn volumes_are_numbered_and_named_in_file_order() {
    let volumes = rig(TWO_KINDS).volumes();
    let names: Vec<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(names, ["disk0", "disk1", "old"]);
    let atlas = drives::load("atlas-10k").expect("it is shipped");
    assert_eq!((volumes[0].sectors, volumes[0].sector_bytes), (atlas.capacity_sectors, 512));
    assert_eq!(rig(TWO_KINDS).build(1).expect("it can be built").device(1).depth(), 32);
}

#[test]
fn drives_outside_an_array_are_none_of_its_members() {
    let text = TWO_KINDS.replace("queue.depth = 32", "volume = \"data\"");
    let striped = |drives: &str| {
        rig(&format!(
            "{text}[array]\norganisation = \"striping\"\ndrives = {drives}\nstripe_unit_sectors = 64\n"
        ))
    };
    for drives in ["[\"data\"]", "[\"data0\", \"data1\"]"] {
        let rig = striped(drives);
        assert_eq!(rig.resolved().array[0].member_count(rig.resolved()), 2, "{drives}");
    }
}

#[test]
fn rig_keys_override_the_preset_and_keep_the_rest() {
    let rig = rig(TWO_KINDS);
    let spec = &rig.resolved().drive[0].spec;
    let mut wanted = drives::load("atlas-10k").expect("it is shipped");
    wanted.queue.depth = 32;
    assert_eq!(*spec, wanted);
}

#[test]
fn bare_drive_equals_a_rig_of_its_preset() {
    let spec = drives::load("atlas-10k").expect("it is shipped");
    let mut bare = Rig::from_drive(spec.clone());
    let written = rig("[drive]\npreset = \"atlas-10k\"");
    assert_eq!(bare.resolved(), written.resolved());
    assert_eq!(bare.volumes(), written.volumes());
    bare.set("drive.order", "sptf").expect("it is a key");
    assert_eq!(bare.resolved().drive[0].spec.queue.order, "sptf");
    assert_eq!(bare.resolved().drive[0].spec.mechanics, spec.mechanics);
}

#[test]
fn setting_applies_to_all_drives_or_the_named_ones() {
    let mut rig = rig(TWO_KINDS);
    let depths =
        |rig: &Rig| rig.resolved().drive.iter().map(|group| group.spec.queue.depth).collect::<Vec<_>>();
    rig.set("drive.queue_depth", "8").expect("it is a short path");
    assert_eq!(depths(&rig), [8, 8]);
    rig.set("drive.old.queue.depth", "2").expect("a volume is called so");
    assert_eq!(depths(&rig), [8, 2]);
    rig.set("drive.old.count", "3").expect("it is a key of the rig");
    assert_eq!(rig.volumes().len(), 5);
    rig.set("host.order", "sstf").expect("it is a short path");
    assert_eq!(rig.resolved().host.queue.order.as_deref(), Some("sstf"));
    rig.set("title", "2024").expect("a text may look like a number");
    assert_eq!(rig.resolved().title, "2024");
    rig.set("drive.preset", "cheetah-9lp").expect("it is shipped");
    assert_eq!(rig.resolved().drive[1].spec.name, "cheetah-9lp");
    assert_eq!(depths(&rig), [8, 2]);
    assert_eq!(
        rig.set("bus.sharing", "none").expect_err("there is none").to_string(),
        "t.toml: bus.sharing=none: the rig has no `[bus]`"
    );
}

#[test]
fn keys_that_are_set_together_are_checked_together() {
    let (most, start) = ("drive.cache.dirty_max_sectors", "drive.cache.dirty_start_sectors");
    let drive = || Rig::from_drive(drives::load("exos-x16").expect("it is shipped"));
    assert!(drive().set(most, "512").is_err(), "destaging starts at more than that");
    let set = |keys: &[(&str, &str)]| {
        let mut rig = drive();
        rig.set_all(keys.iter().copied()).map(|()| rig.resolved().drive[0].spec.clone())
    };
    let both = set(&[(most, "512"), (start, "256")]).expect("the two fit");
    assert_eq!((both.cache.dirty_max_sectors, both.cache.dirty_start_sectors), (512, 256));
    assert_eq!(set(&[(start, "256"), (most, "512")]).expect("in this order, too"), both);
    assert!(
        set(&[(most, "512"), (start, "256"), ("title", "2024")]).is_ok(),
        "a text may look like a number"
    );
    let error = |keys: &[(&str, &str)]| set(keys).expect_err("it is wrong").to_string();
    assert_eq!(
        error(&[(most, "512"), (start, "1000")]),
        "exos-x16: drive.cache.dirty_start_sectors: 1000 is outside 0 to 512 sectors"
    );
    assert_eq!(
        error(&[("drive.order", "sptf"), ("bus.sharing", "none")]),
        "exos-x16: bus.sharing=none: the rig has no `[bus]`"
    );
}

#[test]
fn rejected_setting_leaves_the_rig_unchanged() {
    let mut rig = rig(TWO_KINDS);
    let before = rig.resolved().clone();
    let mut said = |path: &str, value: &str| rig.set(path, value).expect_err(path).to_string();
    assert_eq!(
        said("drive.queue.dept", "1"),
        "t.toml: drive.queue.dept=1: a rig has no key `drive.queue.dept`; did you mean `drive.queue.depth`?"
    );
    assert_eq!(
        said("drive.queue_depth", "0"),
        "t.toml: drive[0].queue.depth: 0 is outside 1 to 1024 commands"
    );
    assert_eq!(
        said("drive.order", "sptff"),
        "t.toml: drive[0].queue.order: no order is called `sptff`; the nearest is `sptf`"
    );
    assert_eq!(
        said("drive.count", "many"),
        "t.toml: drive[0].count: invalid type: string \"many\", expected a whole number from 0 on"
    );
    assert_eq!(said("drive.old.count", "0"), "t.toml: drive[1].count: 0 is outside 1 to 1024 drives");
    assert_eq!(
        said("drive.preset", "atlas"),
        "t.toml: drive[0].preset: drives: no drive `atlas`; did you mean `atlas-10k`?"
    );
    assert_eq!(*rig.resolved(), before);
}

#[test]
fn resolved_rig_reads_back_without_presets() {
    for text in [TWO_KINDS, "[drive]\npreset = \"atlas-10k-v-300\""] {
        let once = rig(text);
        let written = once.to_toml();
        let again = Rig::parse(&written, "again", &mut |name| panic!("asked for {name}"));
        let again = again.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.volumes(), once.volumes());
        assert_eq!(again.to_toml(), written);
    }
}

/// A rig of nine drives with the lines in front of and behind them.
fn nine(before: &str, after: &str) -> String {
    format!("{before}\n[drive]\npreset = \"atlas-10k\"\ncount = 9\nvolume = \"d\"\n{after}")
}

#[test]
fn drive_without_a_buffer_is_rejected_on_a_loop_and_before_an_interface() {
    let with = |after: &str| refused(&nine("", &format!("cache.buffered = false\n{after}")));
    assert_eq!(
        with("[bus]\nkind = \"ssa-loop\""),
        "t.toml:6: drive.cache.buffered: false needs a parallel bus; a loop's drives hold whole frames"
    );
    assert_eq!(
        with("[host.interface]\nkind = \"pio-4\""),
        "t.toml:6: drive.cache.buffered: false is not modelled with `[host.interface]`; remove one of the two"
    );
}

#[test]
fn every_invalid_rig_is_rejected_with_line_and_reason() {
    let said = [
        ("".into(), "t.toml: a rig needs a drive: `[drive]` with `preset = \"NAME\"`"),
        ("drive = 7".into(), "t.toml:1: drive: must be a table `[drive]` or tables `[[drive]]`"),
        (
            "[drive]\npreset = \"atlas-10\"".into(),
            "t.toml:2: drive.preset: drives: no drive `atlas-10`; did you mean `atlas-10k`?",
        ),
        (nine("", "\n[drive.queue]\ndepth = 5000"), "t.toml:8: drive.queue.depth: 5000 is outside 1 to 1024 commands"),
        ("[drive]\ncount = 2".into(), "t.toml:1: drive: missing field `preset`; without one it must be a whole drive, and that has a `name`"),
        (
            nine("titel = \"x\"", ""),
            "t.toml:1: titel: unknown field `titel`, expected one of `title`, `sources`, `devices`, `layers`, `drive`, `bus`, `controller`, `array`, `host`, `node`, `rearrange`, `node_queue`; did you mean `title`?",
        ),
        (
            "[[drive]]\npreset = \"atlas-10k\"\nvolume = \"a\"\n[[drive]]\npreset = \"atlas-10k\"\nvolume = \"a\"".into(),
            "t.toml:6: drive[1].volume: two volumes are called `a`",
        ),
        (nine("", "queue.order = \"sptg\""), "t.toml:6: drive.queue.order: no order is called `sptg`; the nearest is `sptf`"),
        ("[drive\n".into(), "t.toml:1: drive: unclosed table, expected `]`"),
        (nine("", "on = \"scsi\""), "t.toml:6: drive.on: no bus is called `scsi`"),
        (
            nine("", "on = \"scsi\"\n[bus]\nname = \"scsi0\""),
            "t.toml:6: drive.on: no bus is called `scsi`; did you mean `scsi0`?",
        ),
        (
            nine("", "[[bus]]\nname = \"a\"\n[[bus]]\nname = \"b\""),
            "t.toml:2: drive.on: is needed, because the rig has 2 of them",
        ),
        (nine("", "[bus]\nread_us_per_sector = -1"), "t.toml:7: bus.read_us_per_sector: -1 is outside 0 to 1000000 µs a sector"),
        (
            nine("", "[bus]\nspeed = 5"),
            "t.toml:7: bus.speed: unknown field `speed`, expected one of `name`, `sharing`, `read_us_per_sector`, `write_us_per_sector`, `arbitration_us`, `arbitration`, `mb_s`, `kind`, `link_mb_s`, `frame_bytes`, `cut_links`, `command_us`, `controller`",
        ),
        (
            nine("", "[bus]\nkind = \"ssa-loop\"\ncut_links = [10]"),
            "t.toml:8: bus.cut_links: 10 is beyond the links of this loop, 0 to 9",
        ),
        (
            nine("", "[bus]\nkind = \"ssa-loop\"\ncut_links = [4, 5]"),
            "t.toml:8: bus.cut_links: leave no route to `d4`",
        ),
        (nine("", "[bus]\nkind = \"ssa-loop\"\nlink_mb_s = 0"), "t.toml:8: bus.link_mb_s: 0 is outside 0.001 to 1000000 MB/s"),
        (nine("", "[bus]\ncut_links = [1]"), "t.toml:7: bus.cut_links: is for a bus of `kind = \"ssa-loop\"`"),
        (
            nine("", "count = 1\n[bus]\nkind = \"ssa-loop\"\nsharing = \"exclusive\"").replace("count = 9\n", ""),
            "t.toml:8: bus.sharing: is for a bus of `kind = \"parallel\"`; a loop is always shared",
        ),
        (
            nine("", "[bus]\nkind = \"ssa-loop\"").replace("count = 9", "count = 127"),
            "t.toml:7: bus.kind: 127 drives stand on it, and a loop takes 126",
        ),
        (nine("", "[bus]\nmb_s = 133"), "t.toml:7: bus.mb_s: is for a bus of `sharing = \"interleaved\"`"),
        (
            nine("", "[bus]\nsharing = \"interleaved\"\narbitration_us = 5"),
            "t.toml:8: bus.arbitration_us: is for a bus that drives have to win",
        ),
        (
            nine("", "[bus]\nname = \"scsi\"\n[controller]\non = \"scsi\""),
            "t.toml:9: controller.on: `scsi` has no `mb_s` for controllers to share",
        ),
        (
            nine("", "[bus]\nname = \"scsi\"\n[controller]\non = \"pci\""),
            "t.toml:9: controller.on: no bus is called `pci`; did you mean `scsi`?",
        ),
        (
            nine("", "[host.interface]\nkind = \"ultra-dma-2\"\nword_us = 1.0"),
            "t.toml:8: host.interface.word_us: is for programmed transfer (`pio-0` to `pio-4`)",
        ),
        (nine("", "[[bus]]\n[[bus]]"), "t.toml:7: bus[1].name: two buses are called `bus`"),
        (nine("", "[[controller]]\n[[controller]]"), "t.toml:7: controller[1].name: two controllers are called `controller`"),
        (
            nine("", "[controller]\nqueue_depth = 4"),
            "t.toml:7: controller.queue_depth: is for a controller of `kind = \"smart\"`",
        ),
        (
            nine("", "[controller]\nkind = \"smart\"\ncache = { sectors = 100 }"),
            "t.toml:8: controller.cache.sectors: 1 is outside 2 to 16777216 lines",
        ),
        (
            nine("", "[controller]\nkind = \"smart\"\ncache = { sectors = 100, drive = \"d1\" }"),
            "t.toml:8: controller.cache.drive: a cache on a drive needs two drives on the controller, `d1` and the one that it caches; it has 9",
        ),
        (
            nine("", "[controller]\nkind = \"smart\"\ncache = { sectors = 1000, drive = \"d1\", read_ahead_sectors = 8 }"),
            "t.toml:8: controller.cache.read_ahead_sectors: is for a cache in memory, not on a drive",
        ),
        (
            nine("", "[controller]\nkind = \"smart\"\ncache = { sectors = 1000, flush_ms = 3 }"),
            "t.toml:8: controller.cache.flush_ms: unknown field `flush_ms`, expected one of `sectors`, `line_sectors`, `drive`, `writes`, `read_ahead_sectors`, `read_ahead_evicts`, `protected_ratio`, `flush_period_ms`, `flush_idle_ms`, `flush_cluster_lines`; did you mean `flush_idle_ms`?",
        ),
        (
            nine("", "[array]\norganisation = \"striping\"\ndrives = [\"d\"]\nstripe_unit_sectors = 0"),
            "t.toml:9: array.stripe_unit_sectors: 0 is outside 1 to 1000000000000 sectors",
        ),
        (
            nine("", "[array]\norganisation = \"raid-5\"\ndrives = [\"d0\", \"d1\"]\nstripe_unit_sectors = 64"),
            "t.toml:8: array.drives: `raid-5` needs 3 drives at least, and 2 are named",
        ),
        (
            nine("", "[array]\norganisation = \"raid5\"\ndrives = [\"d\"]"),
            "t.toml:7: array.organisation: unknown variant `raid5`, expected one of `concatenation`, `striping`, `mirroring`, `parity-drive`, `raid-5`, `raid-6`, `chained-declustering`; did you mean `raid-5`?",
        ),
        (
            nine("", "[array]\norganisation = \"striping\"\ndrives = [\"d\"]"),
            "t.toml:6: array.stripe_unit_sectors: `striping` needs a stripe unit, or `track_aligned`",
        ),
        (
            nine("", "[array]\norganisation = \"concatenation\"\ndrives = [\"d9\"]"),
            "t.toml:8: array.drives: no drive is called `d9`; did you mean `d0`?",
        ),
        (
            nine("", "[array]\norganisation = \"concatenation\"\ndrives = [\"d1\", \"d1\"]"),
            "t.toml:8: array.drives: `d1` stands there twice",
        ),
        (
            nine("", "[array]\norganisation = \"mirroring\"\ndrives = [\"d\"]"),
            "t.toml:8: array.drives: 9 drives are no multiple of 2 copies",
        ),
        (
            nine("", "[array]\norganisation = \"striping\"\ndrives = [\"d\"]\nstripe_unit_sectors = 90000000000"),
            "t.toml:9: array.stripe_unit_sectors: 90000000000 is outside 1 to 17966953 sectors",
        ),
        (
            nine(
                "",
                "[[array]]\norganisation = \"striping\"\nname = \"a\"\ndrives = [\"d1\", \"d2\"]\nstripe_unit_sectors = 8\n[[array]]\norganisation = \"concatenation\"\ndrives = [\"d2\"]",
            ),
            "t.toml:13: array[1].drives: `d2` is in another array, too",
        ),
        (
            nine("", "[array]\norganisation = \"mirroring\"\ndrives = [\"d1\", \"d2\"]\nfailed = [\"d3\"]"),
            "t.toml:9: array.failed: the array has no drive `d3`; did you mean `d1`?",
        ),
        (
            nine("", "[array]\norganisation = \"mirroring\"\ndrives = [\"d1\", \"d2\"]\nfailed = [\"d1\", \"d2\"]"),
            "t.toml:9: array.failed: no copy is left of some blocks",
        ),
        (
            nine(
                "",
                "[array]\norganisation = \"raid-5\"\ndrives = [\"d\"]\nstripe_unit_sectors = 8\nfailed = [\"d1\", \"d2\"]",
            ),
            "t.toml:10: array.failed: `raid-5` survives 1 failed drive, and 2 are named",
        ),
        (
            nine(
                "",
                "[array]\norganisation = \"raid-5\"\ndrives = [\"d\"]\nstripe_unit_sectors = 8\nparity_unit_sectors = 12",
            ),
            "t.toml:10: array.parity_unit_sectors: 12 is no multiple of the stripe unit of 8 sectors",
        ),
        (
            nine("", "[array]\norganisation = \"striping\"\ndrives = [\"d\"]\nstripe_unit_sectors = 8\ntrack_aligned = true"),
            "t.toml:9: array.stripe_unit_sectors: is not for an array whose units are tracks",
        ),
        (
            nine(
                "",
                "[array]\norganisation = \"mirroring\"\ndrives = [\"d1\", \"d2\"]\nfailed = [\"d1\"]\nspares = [\"d2\"]",
            ),
            "t.toml:10: array.spares: `d2` is one of the array's drives",
        ),
        (
            nine(
                "",
                "[array]\norganisation = \"mirroring\"\ndrives = [\"d1\", \"d2\"]\nfailed = [\"d1\"]\nspares = [\"d4\"]\nrebuild_mb_s = 0",
            ),
            "t.toml:11: array.rebuild_mb_s: 0 is outside 0.001 to 1000000 MB/s",
        ),
        (
            nine("", "[host.queue]\norder = \"clook\""),
            "t.toml:7: host.queue.order: no order is called `clook`; the nearest is `c-look`",
        ),
        (
            nine("[devices]\n14 = \"d10\"", ""),
            "t.toml:2: devices.14: no volume is called `d10`; did you mean `d1`?",
        ),
    ];
    for (text, wanted) in said {
        let text: String = text;
        assert_eq!(refused(&text), wanted, "{text}");
    }
}

/// The list of allowed keys is not repeated here, so that a new key changes no test.
#[test]
fn unknown_key_is_rejected_with_its_line_and_the_nearest_key() {
    let message = refused(&nine("", "queue.dept = 3"));
    assert!(
        message.starts_with("t.toml:6: drive.queue.dept: unknown field `dept`, expected one of `depth`"),
        "{message}"
    );
    assert!(message.ends_with("; did you mean `depth`?"), "{message}");
}

#[test]
fn array_replaces_its_drives_among_the_volumes() {
    let raid = "[array]\nname = \"raid\"\norganisation = \"raid-5\"\ndrives = [\"d0\", \"d1\", \"d2\"]\nstripe_unit_sectors = 64";
    let volumes = rig(&nine("", raid)).volumes();
    let names: Vec<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(names, ["d3", "d4", "d5", "d6", "d7", "d8", "raid"]);
    assert_eq!(volumes[6].sectors, volumes[0].sectors / 64 * 64 * 2);
}

#[test]
fn sector_transfer_runs_at_the_slowest_stage_of_its_path() {
    let sector = |after: &str| {
        let rig = rig(&nine("", after));
        let spec = super::attach::attached(rig.resolved(), 0);
        (spec.bus.read_us_per_sector, spec.bus.write_us_per_sector)
    };
    let own = sector("");
    assert_eq!(sector("[bus]\nread_us_per_sector = 500"), (500.0, own.1));
    assert_eq!(
        sector("[bus]\nwrite_us_per_sector = 0.001\n[controller]\nus_per_sector = 700"),
        (700.0, 700.0)
    );
}

#[test]
fn trace_devices_map_to_volume_numbers() {
    let rig = rig(&nine("devices = { 14 = \"d3\", sda = \"d0\" }", ""));
    let devices = rig.trace_devices().expect("the rig says so");
    assert_eq!(devices, BTreeMap::from([("14".to_string(), 3), ("sda".to_string(), 0)]));
    assert!(Rig::from_drive(drives::load("atlas-10k").expect("it is shipped")).trace_devices().is_none());
}

/// Asks both drives for the same blocks, one after the other.
struct Twice(u64);

impl Load for Twice {
    fn poll(&mut self, _now: Instant) -> Poll {
        if self.0 == 40 {
            return Poll::Done;
        }
        self.0 += 1;
        let id = self.0 - 1;
        Poll::Issue(Issue::new((id % 2) as u32, Request::read(Lbn(id / 2 * 10_000), 8), id))
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {}
}

#[test]
fn drives_of_one_rig_draw_different_random_numbers() {
    let retries = "mechanics.retries = { probability = 0.5, turns_max = 4 }";
    let rig = rig(&format!("[drive]\npreset = \"atlas-10k\"\ncount = 2\n{retries}"));
    let mut times = [Nanos::ZERO; 2];
    let mut engine = rig.build(3).expect("it can be built");
    engine.run(&mut Twice(0), &mut |finished| {
        times[finished.device as usize] += finished.completion.response()
    });
    assert_ne!(times[0], times[1]);
}

#[test]
fn drive_that_dies_is_one_of_its_array() {
    let text = "[drive]\npreset = \"atlas-10k\"\ncount = 3\n[array]\norganisation = \"mirroring\"\n\
                drives = [\"disk0\", \"disk1\"]\nspares = [\"disk2\"]\nfails = [{ drive = \"NAME\", at_s = 1.0 }]\n";
    let fault = refused(&text.replace("NAME", "disk4"));
    assert!(
        fault.contains("array.fails[0].drive: `disk4` is no drive of the array; did you mean"),
        "{fault}"
    );
    let striped = text.replace("mirroring\"\n", "striping\"\nstripe_unit_sectors = 8\n");
    let fault = refused(&striped.replace("NAME", "disk0"));
    assert!(fault.contains("array.spares: an array of `striping` survives no failed drive"), "{fault}");
    for name in ["disk0", "disk2"] {
        rig(&text.replace("NAME", name)).build(1).expect("a member or a spare can die");
    }
}
