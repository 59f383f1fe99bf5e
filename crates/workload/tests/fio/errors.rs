//! Job files that are refused. Each error names the line.

use crate::ours::{parse, volumes};
use headstack_workload::VolumeInfo;
use headstack_workload::fio::JobFile;
use std::io;

/// The error of a job file that cannot be read.
fn refused(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

/// The error of a job file that does not fit a rig.
fn unfit(text: &str) -> String {
    let file = parse(text).unwrap_or_else(|error| panic!("{error}"));
    file.build(&volumes(), 1).expect_err(text).to_string()
}

#[test]
fn every_malformed_job_file_is_rejected_with_its_place() {
    for (text, wanted) in [
        ("", "test.fio: holds no job, which is a section `[name]` other than [global]"),
        ("[global]\nbs=4k", "test.fio: holds no job, which is a section `[name]` other than [global]"),
        ("bs=4k\n[j]", "test.fio:1: bs: stands before the first [section]"),
        ("include x\n[j]", "test.fio:1: include: stands before the first [section]"),
        ("[j\nbs=4k", "test.fio:1: `[j`, where a section is `[name]`"),
        ("[]", "test.fio:1: `[]`, where a section is `[name]`"),
        ("[j]\nrwmixraed=70", "test.fio:2: rwmixraed: unknown key; did you mean `rwmixread`?"),
        ("[j]\nblock_size=4k", "test.fio:2: block_size: unknown key; did you mean `blocksize`?"),
        (
            "[j]\n\n; c\nbs=4q",
            "test.fio:4: bs: `4q`, where a number of bytes such as 512, 4k, 1m or 2g is allowed",
        ),
        ("[j]\nbs=0", "test.fio:2: bs: `0`, where a number of bytes such as 512, 4k, 1m or 2g is allowed"),
        ("[j]\nbs=2g", "test.fio:2: bs: `2g`, where a request of at most 1g is allowed"),
        ("[j]\nbs=", "test.fio:2: bs: needs a value"),
        ("[j]\nbs", "test.fio:2: bs: needs a value"),
        (
            "[j]\nbs=1k,2k,3k,4k",
            "test.fio:2: bs: `1k,2k,3k,4k`, where at most three values, for reads, writes and trims is allowed",
        ),
        (
            "[j]\nrw=randraed",
            "test.fio:2: rw: `randraed`, where read, write, rw, readwrite, randread, randwrite, randrw, trim, randtrim, \
             trimwrite, randtrimwrite is allowed; did you mean `randread`?",
        ),
        ("[j]\nrw= read", "test.fio:2: rw: a blank before `read`, where fio takes none"),
        ("[j]\nrw=randread:0", "test.fio:2: rw: `0`, where a whole number from 1 to 4294967295 is allowed"),
        ("[j]\niodepth=0", "test.fio:2: iodepth: `0`, where a whole number from 1 to 1048576 is allowed"),
        ("[j]\nrwmixread=101", "test.fio:2: rwmixread: `101`, where a whole number from 0 to 100 is allowed"),
        ("[j]\nsize=120%", "test.fio:2: size: `120%`, where 0% to 100% is allowed"),
        (
            "[j]\nsize=1.5g",
            "test.fio:2: size: `1.5g`, where a number of bytes such as 4k or 2g, or a percentage such as 20% is allowed",
        ),
        (
            "[j]\nruntime=5weeks",
            "test.fio:2: runtime: `5weeks`, where a time such as 100us, 20ms, 5s, 10m, 2h or 1d is allowed",
        ),
        ("[j]\ndirect=yes", "test.fio:2: direct: `yes`, where 0 or 1 is allowed"),
        (
            "[j]\nbssplit=4k/60:8k/50",
            "test.fio:2: bssplit: `4k/60:8k/50`, where at most 100 % in all is allowed",
        ),
        ("[j]\nbssplit=4k/60:8k/30", "test.fio:2: bssplit: `4k/60:8k/30`, where 100 % in all is allowed"),
        (
            "[j]\nrandom_distribution=zipf:1",
            "test.fio:2: random_distribution: `1`, where a theta above 0 other than 1 is allowed",
        ),
        (
            "[j]\nrandom_distribution=pareto:1.5",
            "test.fio:2: random_distribution: `1.5`, where a power between 0 and 1 is allowed",
        ),
        (
            "[j]\nrandom_distribution=zoned:60/10:30/90",
            "test.fio:2: random_distribution: `60/10:30/90`, where 100 % of the accesses in all is allowed",
        ),
        (
            "[j]\nrandom_distribution=zoned_abs:60/1g:40",
            "test.fio:2: random_distribution: each zone needs its size, as in 60/20g:40/80g",
        ),
        ("[j]\npre_read=1", "test.fio:2: pre_read: say it as a job before a `stonewall`"),
        (
            "[j]\nsize=${SIZE}",
            "test.fio:2: size: `${SIZE}`: the environment has no variable of that name; set it, or write the value",
        ),
        ("[j]\nnumjobs=$ncpus", "test.fio:2: numjobs: `$ncpus` is not known here; write the number"),
        (
            "[j]\nioengine=filecreate",
            "test.fio:2: ioengine: `filecreate` makes files and makes no disk requests; leave such jobs out",
        ),
        (
            "[j]\nrate=1m\nrate_iops=100",
            "test.fio:3: rate_iops: stands beside `rate`, where one of the two is allowed",
        ),
        (
            "[j]\n#headstack: thinktime=20ms",
            "test.fio:2: thinktime: unknown key of ours; did you mean `think_time`?",
        ),
        (
            "[j]\n#headstack: think_time=expo(20ms)",
            "test.fio:2: think_time: `expo` is no distribution; known: constant, uniform, exponential, normal, poisson, \
             two-valued, pareto, empirical; did you mean `exponential`?",
        ),
        (
            "[j]\n#headstack: local=0.3",
            "test.fio:2: local: `0.3`, where a share and a distance, as in 0.3,normal(0,10000) is allowed",
        ),
        (
            "[j]\n#headstack: sequential=1.3",
            "test.fio:2: sequential: `1.3`, where a share from 0 to 1 is allowed",
        ),
        (
            "[j]\n#headstack: sequential=0.3",
            "test.fio:2: sequential: is about random requests, where `rw` is sequential",
        ),
    ] {
        assert_eq!(refused(text), wanted, "{text}");
    }
}

#[test]
fn every_unfit_job_is_rejected_with_its_place() {
    for (text, wanted) in [
        (
            "[j]\nrw=trim\nsize=1m",
            "test.fio:2: rw: trims, where the volumes of the rig know reads, writes and flushes only",
        ),
        (
            "[j]\nfilename=table",
            "test.fio:1: size: `table`: no volume of the rig, which has `sda`, and a file needs its size; say size=1g, or \
             filename=/dev/sda",
        ),
        (
            "[j]\nfilename=sdb\nsize=1m",
            "test.fio:2: filename: `sdb` is no volume of the rig; did you mean `sda`? (a file of that name is `./sdb`)",
        ),
        ("[j]\nsize=2k", "test.fio:2: size: 2048 bytes, where a request has at least 4096"),
        (
            "[j]\nsize=2t",
            "test.fio:2: size: `j.0.0` has 2199023255552 bytes, where 1099511627776 are left on `sda`",
        ),
        (
            "[j]\nfilename=/dev/sda\noffset=2t\nsize=1m",
            "test.fio:3: offset: begins 2199023255552 bytes into `sda`, which has 1099511627776",
        ),
        (
            "[j]\nfilesize=1m\noffset=1m",
            "test.fio:3: offset: begins 1048576 bytes into a file of 1048576 bytes",
        ),
        (
            "[j]\nsize=1m\nbs=1000\ndirect=1",
            "test.fio:3: bs: 1000 bytes are no whole sectors of `sda` (512 bytes), as direct=1 needs",
        ),
        (
            "[j]\nsize=1m\noffset=100\ndirect=1",
            "test.fio:3: offset: 100 bytes are no whole sectors of `sda` (512 bytes), as direct=1 needs",
        ),
        ("[j]\nsize=1m\nwait_for=k\n[k]\nsize=1m", "test.fio:3: wait_for: `k` is no job before this one"),
        ("[a]\nsize=1m\n[j]\nsize=1m\nwait_for=b", "test.fio:5: wait_for: `b` is no job before this one"),
        (
            "[j]\nsize=1m\nnumjobs=1m\nnrfiles=2",
            "test.fio:4: nrfiles: 2097152 files in all, where at most 1048576 are allowed",
        ),
        (
            "[j]\nsize=1m\nnumjobs=1000\nioengine=libaio\niodepth=100000",
            "test.fio:5: iodepth: 100000000 requests outstanding in all, where at most 16777216 are allowed",
        ),
    ] {
        assert_eq!(unfit(text), wanted, "{text}");
    }
}

#[test]
fn unknown_volume_among_several_is_rejected() {
    let volume =
        |name: &str| VolumeInfo { name: name.to_string(), sectors: 1 << 20, sector_bytes: 512, zones: None };
    let volumes = [volume("sda"), volume("sdb")];
    let file = parse("[j]\nfilename=/dev/sdc").expect("it can be read");
    let error = file.build(&volumes, 1).expect_err("there is no such volume").to_string();
    assert_eq!(
        error,
        "test.fio:2: filename: `/dev/sdc` is no volume of the rig, which has `sda`, `sdb`; did you mean `sda`?"
    );
    let file = parse("[j]\nfilename=sda:/dev/sdb").expect("it can be read");
    let load = file.build(&volumes, 1).expect("both are there");
    assert_eq!(load.files().iter().map(|file| file.volume).collect::<Vec<_>>(), [0, 1]);
    let none = file.build(&[], 1).expect_err("there is no volume");
    assert_eq!(none.to_string(), "test.fio:2: filename: `/dev/sdb` is no volume of the rig, which has none");
}

#[test]
fn two_disks_are_not_taken_for_the_only_volume() {
    let volumes = [VolumeInfo { name: "disk".to_string(), sectors: 1 << 20, sector_bytes: 512, zones: None }];
    let built =
        |text: &str| parse(text).expect("it can be read").build(&volumes, 1).map(|load| load.files().len());
    let refused = [
        "[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sdb",
        "[a]\nfilename=/dev/sda:/dev/sdb",
        "[a]\nfilename=/dev/nvme0n1\n[b]\nfilename=/dev/nvme1n1",
        "[a]\nfilename=/dev/disk/by-id/ata-A1\n[b]\nfilename=/dev/disk/by-id/ata-A2",
        "[a]\nfilename=/dev/md0\n[b]\nfilename=/dev/md1",
    ];
    for text in refused {
        let error = built(text).expect_err(text).to_string();
        assert!(error.contains("are two disks, and the rig has one volume, `disk`"), "{text}: {error}");
    }
    for text in [
        "[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sda",
        "[a]\nfilename=/dev/sda1\n[b]\nfilename=/dev/sda2\n[c]\nfilename=/dev/sda",
        "[a]\nfilename=/dev/nvme0n1p1\n[b]\nfilename=/dev/nvme0n1p12",
        "[a]\nfilename=/dev/disk/by-id/ata-A1-part1\n[b]\nfilename=/dev/disk/by-id/ata-A1-part2",
    ] {
        assert_eq!(built(text), Ok(1), "{text}");
    }
}

#[test]
fn included_files_are_sought_alongside_their_includer() {
    let mut requested = Vec::new();
    let mut read = |name: &str| {
        requested.push(name.to_string());
        match name {
            "jobs/common.fio" => Ok("bs=8k\ninclude more.fio\n".to_string()),
            "jobs/more.fio" => Ok("# only comments\nbs=9q\n".to_string()),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
        }
    };
    let text = "[j]\nsize=1m\ninclude common.fio";
    let error = JobFile::parse(text, "jobs/a.fio", &mut read, &|_| None)
        .expect_err("the last value is wrong")
        .to_string();
    assert!(error.starts_with("jobs/more.fio:2: bs: `9q`"), "{error}");
    assert_eq!(requested, ["common.fio", "jobs/common.fio", "more.fio", "jobs/more.fio"]);
    let mut gone = |_: &str| Err(io::Error::new(io::ErrorKind::NotFound, "no such file"));
    let error =
        JobFile::parse("[j]\ninclude gone", "a.fio", &mut gone, &|_| None).expect_err("it is not there");
    assert_eq!(error.to_string(), "a.fio:2: include: `gone`: no such file");
    let mut section = |_: &str| Ok("[k]\n".to_string());
    let error =
        JobFile::parse("[j]\ninclude b", "a.fio", &mut section, &|_| None).expect_err("it has a section");
    assert_eq!(error.to_string(), "b:1: `[k]`: an included file has no sections");
    let mut itself = |_: &str| Ok("include a".to_string());
    let error = JobFile::parse("[j]\ninclude a", "a.fio", &mut itself, &|_| None).expect_err("it has no end");
    assert_eq!(error.to_string(), "a:1: include: `a`: too many files inside one another");
}

#[test]
fn keys_without_effect_are_listed() {
    let file = parse("[global]\nioengine=libaio\n[j]\nsize=1m\ngroup_reporting\ngtod_reduce=1\nverify=0")
        .expect("it is good");
    let output: Vec<(&str, usize)> = file.ignored().iter().map(|key| (key.key, key.line)).collect();
    assert_eq!(output, [("gtod_reduce", 6)]);
}
