//! Crossings that `layout check` finds on an unmounted file system, compared with those that the kernel reports while it is mounted.

use crate::common::{headstack, json, refused};
use crate::device::{Loop, Mount};
use crate::disks::{self, Disk};
use crate::ext4::{METHODS, PROGRAMS, made, write_tree};
use crate::tools::{have, have_loops_and, run, text};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

#[test]
fn crossings_of_an_image_match_those_of_its_mount() {
    if !have_loops_and(&[&PROGRAMS[..], &["cp"]].concat()) {
        return;
    }
    let tree = disks::folder();
    write_tree(tree.path());
    let disk = Disk::of("atlas-10k", 1003, 1_000_000);
    for mode in ["none", METHODS[0], METHODS[1]] {
        let image = disk.image();
        match mode {
            "none" => drop(run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "4096", &image])),
            mode => drop(made(&disk, &image, &["--method", mode])),
        }
        let here = ["--partition", disk.partition(), "--json"];
        let check = || headstack(&[&["layout", "check", disk.map(), &image], &here[..]].concat());
        let device = Loop::over(Path::new(&image));
        let mount = Mount::new("ext4", device.device());
        run("cp", &["-r", text(tree.path()), text(&mount.path().join("copy"))]);
        // One file is in the root folder, because a path there has only one slash.
        std::fs::write(mount.path().join("big"), vec![7; 3_000_000]).expect("there is room");
        run("sync", &["-f", text(mount.path())]);
        let shown = json(&[&["layout", "show", disk.map(), text(mount.path())], &here[..]].concat());
        let busy = check();
        assert!(busy.code == 2 && busy.err.contains("is in use"), "{}", busy.err);
        let place = text(mount.path()).to_string();
        mount.unmount();
        drop(device);

        let checked = check();
        let out = crate::common::schema::parsed(&["layout", "check"], &checked.out);
        for (key, of) in [
            ("files", "inodes"),
            ("extents", "extents"),
            ("bytes", "bytes"),
            ("crossings", "crossings"),
            ("extents_on_track", "extents_on_track"),
        ] {
            assert_eq!(out["files"][of], shown["total"][key], "{mode}: {of}");
        }
        let crosses = shown["files"].as_array().expect("it lists files").iter();
        let crosses = crosses.filter(|file| file["crossings"] != 0);
        let by_kernel: BTreeMap<String, u64> = crosses
            .map(|file| {
                let path = file["path"].as_str().expect("it has a path");
                (path.replacen(&place, "", 1), file["crossings"].as_u64().expect("a number"))
            })
            .collect();
        let by_inodes: BTreeMap<String, u64> = out["crossing"]
            .as_array()
            .expect("it lists files")
            .iter()
            .map(|file| {
                let path = file["path"].as_str().unwrap_or_else(|| panic!("no path in {file}"));
                (path.to_string(), file["crossings"].as_u64().expect("a number"))
            })
            .collect();
        assert_eq!(by_inodes, by_kernel, "{mode}");
        assert_eq!((checked.code, by_inodes.is_empty()), if mode == "none" { (1, false) } else { (0, true) });
        assert!(out["folders"]["inodes"].as_u64() > Some(20), "{out:#}");
        assert_eq!(out["journal"]["inodes"].as_u64().map(|journals| journals > 0), Some(true), "{out:#}");
    }
}

#[test]
fn damaged_or_foreign_ext4_image_is_rejected() {
    if !have(&PROGRAMS) {
        return;
    }
    let disk = Disk::of("atlas-10k", 1003, 40_000);
    let image = disk.image();
    let check = || refused(&["layout", "check", disk.map(), &image, "--partition", disk.partition()], 2);
    assert!(check().contains("the superblock is not as mke2fs makes it"), "{}", check());
    made(&disk, &image, &["--method", "hidden-file"]);
    let file = std::fs::File::options().read(true).write(true).open(&image).expect("it is there");
    let mut whole = vec![0; 1 << 20];
    file.read_exact_at(&mut whole, 0).expect("it is longer");
    // Inverts single bytes of superblock, descriptors and inodes, one in 211. The check must not crash: it ends with 0, 1 or 2.
    for at in (1024..40_000).step_by(211) {
        file.write_all_at(&[whole[at] ^ 0xFF], at as u64).expect("it is longer");
        let out = headstack(&["layout", "check", disk.map(), &image, "--partition", disk.partition()]);
        assert!([0, 1, 2].contains(&out.code), "byte {at}: {}", out.err);
        file.write_all_at(&whole[at..=at], at as u64).expect("it is longer");
    }
    let foreign = refused(&["layout", "check", disk.map(), &image, "--partition", "1003,20000"], 2);
    assert!(foreign.contains("not this one, or not this map"), "{foreign}");
}
