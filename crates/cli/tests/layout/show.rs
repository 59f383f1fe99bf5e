//! `layout show`: the extents of files on a mounted file system, and the track boundaries that they cross.

use crate::common::{headstack, json, printed, refused};
use crate::device::{Loop, Mount};
use crate::exclude::{map_of, text};
use crate::tools::{folder, have, have_loops_and, run};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Sectors of the small drive, and of its image.
const SMALL_SECTORS: u64 = 220_000;

/// Writes a map of the small drive and a sparse image of it to a folder. Returns their paths.
fn small(folder: &Path) -> (String, String) {
    let [drive, map, image] = ["small.toml", "small.map", "image"].map(|name| folder.join(name));
    fs::write(&drive, include_str!("../small.toml")).expect("the folder is writable");
    printed(&["drive", "map", text(&drive), "-o", text(&map)]);
    let made = File::create(&image).and_then(|file| file.set_len(SMALL_SECTORS * 512));
    made.expect("there is room for a file of holes");
    (text(&map).to_string(), text(&image).to_string())
}

/// The extents of a file according to filefrag: first block and number of blocks, of 4 KiB. Adjacent extents are merged.
fn told_by_filefrag(path: &str) -> Vec<(u64, u64)> {
    let output = run("filefrag", &["-v", "-b4096", path]);
    let rows = output.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        fields.first()?.parse::<u64>().ok()?;
        let first = fields.get(2)?.split("..").next()?.parse().ok()?;
        Some((first, fields.get(3)?.parse().ok()?))
    });
    let mut extents: Vec<(u64, u64)> = Vec::new();
    for (first, blocks) in rows {
        match extents.last_mut() {
            Some(last) if last.0 + last.1 == first => last.1 += blocks,
            _ => extents.push((first, blocks)),
        }
    }
    extents
}

#[test]
fn crossings_match_the_extents_of_filefrag() {
    if !have_loops_and(&["mke2fs", "filefrag", "sync"]) {
        return;
    }
    let folder = folder();
    let (map, image) = small(folder.path());
    let tracks = folder.path().join("tracks");
    printed(&["drive", "map", text(&folder.path().join("small.toml")), "--text", "-o", text(&tracks)]);
    let tracks = fs::read_to_string(tracks).expect("it was written");
    let firsts: Vec<u64> = tracks
        .lines()
        .filter_map(|line| line.split(' ').next()?.parse().ok())
        .filter(|&first| first > 0)
        .collect();

    // The partition begins at sector 2048, which sysfs shows as the loop device's offset.
    let device = Loop::part(Path::new(&image), 2048 * 512, 200_000 * 512);
    run("mke2fs", &["-q", "-t", "ext4", "-b", "4096", device.device()]);
    let mount = Mount::new("ext4", device.device());
    let at = |name: &str| mount.path().join(name);
    fs::create_dir(at("sub")).expect("it is mounted");
    for index in 0..20 {
        let name = if index % 2 == 0 { format!("sub/{index}") } else { index.to_string() };
        fs::write(at(&name), vec![index; 300_000 * (1 + usize::from(index % 7))]).expect("there is room");
    }
    fs::write(at("empty"), []).expect("there is room");
    fs::hard_link(at("1"), at("again")).expect("it is the same file system");
    std::os::unix::fs::symlink("/etc/passwd", at("link")).expect("it is only a name");
    run("sync", &["-f", text(mount.path())]);

    let shown = json(&["layout", "show", &map, text(mount.path()), "--json", "--extents"]);
    assert_eq!(
        (&shown["partition"]["start"], &shown["partition"]["sectors"]),
        (&2048.into(), &200_000.into())
    );
    assert_eq!(shown["total"]["files"], 21, "twenty files and an empty one; links do not count: {shown:#}");
    let (mut extents, mut crossings) = (0, 0);
    for file in shown["files"].as_array().expect("it lists files") {
        let path = file["path"].as_str().expect("it has a path");
        let expected: Vec<[u64; 3]> = told_by_filefrag(path)
            .into_iter()
            .map(|(first, blocks)| {
                let (begin, end) = (2048 + first * 8, 2048 + (first + blocks) * 8);
                let crossed = firsts.iter().filter(|&&first| begin < first && first < end).count();
                [first * 8, blocks * 8, crossed as u64]
            })
            .collect();
        assert_eq!(file["extents_at"], serde_json::json!(expected), "{path}");
        extents += expected.len() as u64;
        crossings += expected.iter().map(|extent| extent[2]).sum::<u64>();
    }
    assert!(crossings > 10, "too few crossings for a test: {shown:#}");
    assert_eq!(
        (&shown["total"]["extents"], &shown["total"]["crossings"]),
        (&extents.into(), &crossings.into())
    );

    let older = json(&["layout", "show", text(mount.path()), "--map", &map, "--json", "--extents"]);
    assert_eq!(older, shown, "the older form, with the map as an option");
    let reversed = refused(&["layout", "show", text(&at("3")), &map], 2);
    assert!(reversed.contains("the map comes first: headstack layout show MAP FILE"), "{reversed}");
    let checked = headstack(&["layout", "show", &map, text(mount.path()), "--summary", "--check"]);
    assert_eq!(checked.code, 1, "{}", checked.err);
    assert!(
        checked.out.contains("as the system tells") && checked.err.contains("track boundaries"),
        "{}",
        checked.err
    );
    let alone = refused(&["layout", "show", &map, text(mount.path()), "/etc/passwd"], 2);
    assert!(alone.contains("another file system"), "{alone}");
    let elsewhere = refused(&["layout", "show", &map, text(&at("3")), "--partition", "2048,100"], 2);
    assert!(elsewhere.contains("of a partition of 100"), "{elsewhere}");
    let (_other_folder, other) = map_of("atlas-10k");
    let foreign = refused(&["layout", "show", text(&other), text(&at("3"))], 2);
    assert!(foreign.contains("another disk"), "{foreign}");
    mount.unmount();
}

#[test]
fn file_with_delayed_allocation_is_rejected() {
    if !have_loops_and(&["mke2fs", "sync"]) {
        return;
    }
    let folder = folder();
    let (map, image) = small(folder.path());
    let device = Loop::over(Path::new(&image));
    run("mke2fs", &["-q", "-t", "ext4", "-b", "4096", device.device()]);
    let mount = Mount::new("ext4", device.device());
    let path = mount.path().join("file");
    // The file is written but not synced: ext4 has not allocated its blocks yet.
    let mut file = File::create(&path).expect("it is mounted");
    file.write_all(&[1; 50_000]).expect("there is room");
    let output = headstack(&["layout", "show", &map, text(&path)]);
    assert!(output.code == 2 && output.err.contains("run sync first"), "{}{}", output.out, output.err);
    file.sync_all().expect("there is room");
    assert_eq!(json(&["layout", "show", &map, text(&path), "--json"])["total"]["extents"], 1);
    drop(file);
    mount.unmount();
}

#[test]
fn file_without_a_block_location_is_rejected() {
    if !have(&["mount"]) {
        return;
    }
    let folder = folder();
    let (map, _) = small(folder.path());
    let show = |path: &str, more: &[&str]| refused(&[&["layout", "show", &map, path], more].concat(), 2);
    assert!(show("/proc/version", &[]).contains("no block device"), "{}", show("/proc/version", &[]));
    assert!(show("/proc/version", &["--partition", "0,1000"]).contains("no FIEMAP"));
    assert!(show("/dev/null", &[]).contains("neither a file nor a folder"));
    assert!(show("no-such-file", &[]).contains("no-such-file: "));
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).expect("the folder is writable");
    assert!(show(text(&empty), &[]).contains("no files"));
    assert!(show("/proc/version", &["--partition", "0,999999"]).contains("beyond the map"));
}
