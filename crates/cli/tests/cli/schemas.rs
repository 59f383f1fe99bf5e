//! The published schemas are JSON Schema of draft 2020-12, there is one per command, and outputs validate against them for another
//! program, too. Every other test that reads an output compares it with its schema (`common::json`).

use crate::common::schema::{file, folder, name, parsed};
use crate::common::{commands_with_json, printed};
use headstack_prerequisites::have_tool;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Commands that print JSON within moments, with the files of [`inputs`]; `@` is the root of the repository.
const OUTPUTS: &[&str] = &[
    "compare atlas-10k wd800jd job.fio --json -",
    "doctor --json",
    "drive firmware --json",
    "drive firmware sata-2013 --json",
    "drive fit fit.trace --from atlas-10k -o fitted.toml --json",
    "drive list --json",
    "drive show exos-x18 --json",
    "layout align a.map --json",
    "layout hints xfs a.map --json",
    "rearrange analyze a.trace --json",
    "rearrange simulate atlas-10k a.trace --json",
    "rig list --json",
    "rig show workstation --json",
    "run --drive atlas-10k --pattern random --count 100 --json",
    "sim atlas-10k job.fio --json -",
    "stripe advise --drive atlas-10k --disks 4 --mpl 8 --size 64K --json",
    "sweep sweep.toml --out rows --json -",
    "sweep status rows --json -",
    "trace stat a.trace --json",
    "tune atlas-10k job.fio --requests 200 --knob queue_depth --json",
    "validate --drive atlas-10k --trace v.trace --json",
    "zones ultrastar-hc620 --json",
    "zones ultrastar-hc620 --from 0 --count 2 --json",
    // Parts of the results that only some rigs and loads have.
    "compare @/recipes/raid5-spare.toml workstation mixed.fio --json -",
    "compare atlas-10k slow.toml mixed.fio --repeat 2 --goal iops>1 --json -",
    "compare st2000dm006 seagate-archive-8tb write.fio --json -",
    "compare @/studies/desk/dma.toml stream-node read.toml --json -",
    "compare atlas-10k exos-x18 tiny.fio --json -",
    "run --drive st2000dm006 --pattern random --count 3000 --write-share 0.5 --json",
    "sim @/recipes/raid5-spare.toml mixed.fio --json -",
    "sim @/studies/desk/dma.toml hdparm.toml --json -",
    "sim atlas-10k mixed.fio --set host.queue.guard=counting --json -",
    "sim atlas-10k tiny.fio --json -",
    "sim hot.toml mixed.fio --json -",
    "sim exos-2x18-sata mixed.fio --json -",
    "sim seagate-archive-8tb write.fio --json -",
    "sim slow.toml mixed.fio --json -",
    "sim smart-controller mixed.fio --json -",
    "sim st2000dm006 mixed.fio --json -",
    "sim stream-node read.toml --json -",
    "sim workstation mixed.fio --json -",
    "sim workstation write.fio --json -",
];

/// Reads pairs of files, a schema and an output, and validates each.
const VALIDATE: &str = "
import json, sys
from jsonschema import Draft202012Validator as Validator
for schema in sys.argv[1:]:
    with open(schema) as file:
        Validator.check_schema(json.load(file))
for line in sys.stdin:
    schema, output = line.split()
    with open(schema) as file, open(output) as found:
        errors = list(Validator(json.load(file)).iter_errors(json.load(found)))
    for error in errors[:3]:
        print(schema, error.json_path, error.message[:300])
";

/// The schemas.
fn files() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
}

#[test]
fn every_command_that_prints_json_has_a_schema() {
    let stem = |path: PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let found: BTreeSet<String> = files().into_iter().filter_map(stem).collect();
    let wanted: BTreeSet<String> =
        commands_with_json().iter().map(|command| name(&command.split(' ').collect::<Vec<_>>())).collect();
    assert_eq!(found, wanted);
}

#[test]
fn schemas_describe_their_outputs() {
    for path in files() {
        let text = fs::read_to_string(&path).expect("the schema can be read");
        let schema: serde_json::Value = serde_json::from_str(&text).expect("a schema is JSON");
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{}", path.display());
        assert!(
            schema.get("properties").or(schema.get("items")).is_some(),
            "{} describes nothing",
            path.display()
        );
    }
}

/// A drive and a rig print a file in JSON's notation, whose schema follows from its types.
#[test]
fn schemas_of_drive_and_rig_files_are_those_of_their_types() {
    for (command, keys) in [("drive-show", "drive"), ("rig-show", "rig")] {
        let path = folder().join(format!("{command}.json"));
        let current = printed(&[keys, "keys", "--json-schema"]);
        if std::env::var_os("HEADSTACK_UPDATE").is_some() {
            fs::write(&path, &current).expect("the schema can be written");
        }
        let committed = fs::read_to_string(&path).expect("the schema can be read");
        assert!(committed == current, "{}: HEADSTACK_UPDATE=1 brings it up to date", path.display());
    }
}

/// A folder with what the commands read.
fn inputs() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("there is room for a folder");
    let at = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    let trace = "0.000000 0 8 8 1\n10.000000 0 80 8 0\n20.000000 0 800 8 1\n30.0 0 8 8 1\n40.0 0 8 8 1\n";
    let measured = |number: u64| {
        let (lbn, us) = (number * 7_919_317 % 17_000_000, 3000 + number % 13 * 700);
        format!("R Miss {lbn} 8 {us}.0 20000.0\n")
    };
    let fit: String = (0..600).map(measured).collect();
    for (name, text) in [
        ("fit.trace", fit.as_str()),
        ("job.fio", "[j]\nrw=randrw\nsize=1m\nnumber_ios=200\nfsync=8\n"),
        (
            "mixed.fio",
            "[j]\ndirect=1\nrw=randrw\nbs=16k\nioengine=libaio\niodepth=8\nnumber_ios=3000\nsize=8g\nfsync=50\n",
        ),
        ("write.fio", "[j]\ndirect=0\nrw=randwrite\nbs=16k\nnumber_ios=1000\nsize=8g\n"),
        ("tiny.fio", "[j]\nrw=read\nnumber_ios=2\nsize=1m\n"),
        ("read.toml", "requests = 300\n[[stream]]\nstreams = 4\nrequest_bytes = 65536\n"),
        ("hdparm.toml", "[hdparm]\nbytes = 4194304\n"),
        (
            "slow.toml",
            "[drive]\npreset = \"exos-x18\"\nmechanics.slow_periods = [{ from_s = 0, share = 0.02, delay_ms = 100 }]\n",
        ),
        ("hot.toml", "[drive]\npreset = \"atlas-10k\"\n[rearrange]\nwhen = \"at-once\"\nperiod_s = 5\n"),
        ("a.trace", trace),
        ("v.trace", "R Miss 8 8 9120.5 0\nW Miss 800 8 8120.5 0\nR Miss 8000 8 7120.5 0\n"),
        ("sweep.toml", "rigs = [\"atlas-10k\"]\nloads = [\"job.fio\"]\nseeds = 2\n"),
    ] {
        fs::write(at(name), text).expect("the folder is writable");
    }
    printed(&["drive", "map", "atlas-10k", "-o", &at("a.map")]);
    place
}

/// A Python that has jsonschema: the first one of the path, or the system's, for which Debian's package is.
fn python() -> Result<&'static str, String> {
    let has_it = |python: &&str| {
        Command::new(python)
            .args(["-c", "import jsonschema"])
            .output()
            .is_ok_and(|done| done.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has_it);
    found.ok_or_else(|| "Python's jsonschema is not installed (scripts/install-test-packages)".to_string())
}

#[test]
fn outputs_validate_against_the_published_schemas() {
    let python = python();
    if !have_tool("jsonschema", python.clone().map(|_| ())) {
        return;
    }
    let place = inputs();
    let at = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    let mut pairs = String::new();
    for (index, line) in OUTPUTS.iter().enumerate() {
        let line = line.replace('@', concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let words: Vec<&str> = line.split(' ').collect();
        let done =
            crate::common::command(&words).current_dir(place.path()).output().expect("the command starts");
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        parsed(&words, &String::from_utf8_lossy(&done.stdout));
        let output = at(&format!("{index}.json"));
        fs::write(&output, done.stdout).expect("the folder is writable");
        let schema = file(&words).unwrap_or_else(|| panic!("{line} has no schema"));
        pairs += &format!("{} {output}\n", schema.display());
    }
    let list = at("pairs");
    fs::write(&list, pairs).expect("the folder is writable");
    let done = Command::new(python.expect("there is one"))
        .args(["-c", VALIDATE])
        .args(files())
        .stdin(fs::File::open(&list).expect("it was written"))
        .output()
        .expect("python3 starts");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && out.is_empty(), "{out}{err}");
}
