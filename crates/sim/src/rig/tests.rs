//! Rigs read, set, resolved and refused.

use super::*;
use headstack_model::{Lbn, Nanos, Request};
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
fn are_the_volumes_numbered_and_named_in_the_files_order() {
    let volumes = rig(TWO_KINDS).volumes();
    let names: Vec<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(names, ["disk0", "disk1", "old"]);
    let atlas = drives::load("atlas-10k").expect("it is shipped");
    assert_eq!((volumes[0].sectors, volumes[0].sector_bytes), (atlas.capacity_sectors, 512));
    assert_eq!(rig(TWO_KINDS).build(1).expect("it can be built").device(1).depth(), 32);
}

#[test]
fn do_a_rigs_keys_lie_over_the_presets_and_leave_the_rest() {
    let rig = rig(TWO_KINDS);
    let spec = &rig.resolved().drive[0].spec;
    let mut wanted = drives::load("atlas-10k").expect("it is shipped");
    wanted.queue.depth = 32;
    assert_eq!(*spec, wanted);
}

#[test]
fn is_a_bare_drive_a_rig() {
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
fn does_a_path_change_all_drives_or_those_it_names() {
    let mut rig = rig(TWO_KINDS);
    let depths =
        |rig: &Rig| rig.resolved().drive.iter().map(|group| group.spec.queue.depth).collect::<Vec<_>>();
    rig.set("drive.queue_depth", "8").expect("it is a short path");
    assert_eq!(depths(&rig), [8, 8]);
    rig.set("drive.old.queue.depth", "2").expect("a volume is called so");
    assert_eq!(depths(&rig), [8, 2]);
    rig.set("drive.old.count", "3").expect("it is a key of the rig");
    assert_eq!(rig.volumes().len(), 5);
    rig.set("title", "2024").expect("a text may look like a number");
    assert_eq!(rig.resolved().title, "2024");
    rig.set("drive.preset", "cheetah-9lp").expect("it is shipped");
    assert_eq!(rig.resolved().drive[1].spec.name, "cheetah-9lp");
    assert_eq!(depths(&rig), [8, 2]);
}

#[test]
fn does_a_bad_setting_leave_the_rig_as_it_was() {
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
        "t.toml: drive[0].count: invalid type: string \"many\", expected u32"
    );
    assert_eq!(said("drive.old.count", "0"), "t.toml: drive[1].count: 0 is outside 1 to 1024 drives");
    assert_eq!(
        said("drive.preset", "atlas"),
        "t.toml: drive[0].preset: drives: no drive `atlas`; did you mean `atlas-iii`?"
    );
    assert_eq!(*rig.resolved(), before);
}

#[test]
fn is_the_resolved_rig_a_rig_of_its_own() {
    for text in [TWO_KINDS, "[drive]\npreset = \"atlas-10k-v-300\""] {
        let once = rig(text);
        let written = once.to_toml();
        let again = Rig::parse(&written, "again", &mut |name| panic!("asked for {name}"));
        let again = again.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.volumes(), once.volumes());
        assert_eq!(again.to_toml(), written);
    }
}

#[test]
fn does_every_bad_rig_say_where_and_what() {
    let said = [
        ("", "t.toml: a rig needs a drive: `[drive]` with `preset = \"NAME\"`"),
        ("drive = 7", "t.toml:1: drive: must be a table `[drive]` or tables `[[drive]]`"),
        (
            "[drive]\npreset = \"atlas-10\"",
            "t.toml:2: drive.preset: drives: no drive `atlas-10`; did you mean `atlas-10k`?",
        ),
        (
            "[drive]\npreset = \"atlas-10k\"\nqueue.dept = 3",
            "t.toml:3: drive.queue.dept: unknown field `dept`, expected one of `depth`, `order`, `window`; did you mean `depth`?",
        ),
        (
            "[drive]\npreset = \"atlas-10k\"\n\n[drive.queue]\ndepth = 5000",
            "t.toml:5: drive.queue.depth: 5000 is outside 1 to 1024 commands",
        ),
        ("[drive]\ncount = 2", "t.toml:1: drive: missing field `name`"),
        (
            "titel = \"x\"\n[drive]\npreset = \"atlas-10k\"",
            "t.toml:1: titel: unknown field `titel`, expected `title` or `sources`; did you mean `title`?",
        ),
        (
            "[[drive]]\npreset = \"atlas-10k\"\nvolume = \"a\"\n[[drive]]\npreset = \"atlas-10k\"\nvolume = \"a\"",
            "t.toml:1: drive: two volumes are called `a`",
        ),
        (
            "[drive]\npreset = \"atlas-10k\"\nqueue.order = \"fast\"",
            "t.toml:3: drive.queue.order: no order is called `fast`; the nearest is `sstf`",
        ),
        ("[drive\n", "t.toml:1: drive: unclosed table, expected `]`"),
    ];
    for (text, wanted) in said {
        assert_eq!(refused(text), wanted);
    }
}

/// Asks both drives for the same blocks, one after the other.
struct Twice(u64);

impl Load for Twice {
    fn poll(&mut self, _now: Nanos) -> Poll {
        if self.0 == 40 {
            return Poll::Done;
        }
        self.0 += 1;
        let id = self.0 - 1;
        Poll::Issue(Issue::new((id % 2) as u32, Request::read(Lbn(id / 2 * 10_000), 8), id))
    }

    fn handle_completion(&mut self, _now: Nanos, _id: u64) {}
}

#[test]
fn do_two_drives_of_a_rig_draw_chances_of_their_own() {
    let retries = "mechanics.retries = { probability = 0.5, turns_max = 4 }";
    let rig = rig(&format!("[drive]\npreset = \"atlas-10k\"\ncount = 2\n{retries}"));
    let mut times = [Nanos::ZERO; 2];
    let mut engine = rig.build(3).expect("it can be built");
    engine.run(&mut Twice(0), &mut |finished| {
        times[finished.device as usize] += finished.completion.response()
    });
    assert_ne!(times[0], times[1]);
}
