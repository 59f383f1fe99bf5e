//! fio's engines, variables and disk names, as this crate interprets them.

use crate::ours::{parse, run, volumes};
use headstack_model::{Instant, Nanos};
use headstack_workload::VolumeInfo;
use headstack_workload::fio::{FioLoad, JobFile};
use std::io;

const MS: u64 = 1_000_000;

fn ten_volumes() -> Vec<VolumeInfo> {
    let volume = |number: u32| VolumeInfo {
        name: format!("data{number}"),
        sectors: 1 << 20,
        sector_bytes: 512,
        zones: None,
    };
    (0..10).map(volume).collect()
}

fn on(volumes: &[VolumeInfo], text: &str) -> Result<FioLoad, String> {
    let file = parse(text).map_err(|error| error.to_string())?;
    file.build(volumes, 1).map_err(|error| error.to_string())
}

fn built(text: &str) -> FioLoad {
    on(&volumes(), text).unwrap_or_else(|error| panic!("{error}"))
}

/// The number of requests that are issued before the first one completes.
fn outstanding(text: &str) -> usize {
    let all = run(&mut built(text), Nanos(5 * MS), 1000);
    all.iter().filter(|timed| timed.at == Instant::ZERO).count()
}

#[test]
fn synchronous_engines_keep_one_request_outstanding() {
    let job = "rw=randread\nsize=1m\niodepth=32";
    for engine in ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"] {
        assert_eq!(outstanding(&format!("[j]\n{job}\nioengine={engine}")), 1, "{engine}");
    }
    assert_eq!(outstanding(&format!("[j]\n{job}")), 1, "fio's default is psync");
    for engine in ["libaio", "io_uring", "posixaio", "null", "nbd"] {
        assert_eq!(outstanding(&format!("[j]\n{job}\nioengine={engine}")), 32, "{engine}");
    }
    assert_eq!(outstanding(&format!("[j]\n{job}\nio_submit_mode=offload\nrate_iops=1m")), 1, "the rate");
    let load = built(&format!("[a]\n{job}\n[b]\n{job}\n[c]\n{job}\nioengine=libaio"));
    assert_eq!(
        load.notes(),
        [
            "`a`, `b`: queue depth capped at 1 and not 32, as in fio, because the engine psync is synchronous; \
          ioengine=libaio is not"
        ]
    );
    assert_eq!(load.jobs().iter().map(|job| job.depth).collect::<Vec<_>>(), [1, 1, 32]);
}

#[test]
fn unknown_engine_is_rejected_with_nearest_name() {
    let error = on(&volumes(), "[j]\nsize=1m\nioengine=libaoi").expect_err("there is none");
    assert!(error.starts_with("test.fio:3: ioengine: `libaoi`, where psync, sync,"), "{error}");
    assert!(error.ends_with("did you mean `libaio`?"), "{error}");
}

#[test]
fn variables_come_from_caller() {
    let mut nothing = |_: &str| Err(io::Error::from(io::ErrorKind::NotFound));
    let variables = |name: &str| match name {
        "SIZE" => Some("64k".to_string()),
        "$ncpus" => Some("3".to_string()),
        _ => None,
    };
    let text =
        "[j]\nioengine=nbd\nuri=${GONE}\nbs=4k\nsize=${SIZE}\nnumjobs=$ncpus\n[k]\nrw=read\nsize=${SIZE}";
    let file = JobFile::parse(text, "v.fio", &mut nothing, &variables).expect("all that counts is set");
    let said: Vec<(&str, &str)> =
        file.variables().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(said, [("${SIZE}", "64k"), ("$ncpus", "3")]);
    let mut load = file.build(&volumes(), 1).expect("it fits");
    assert_eq!(load.jobs().len(), 4);
    assert_eq!(run(&mut load, Nanos(MS), 1000).len(), 4 * 16);
}

#[test]
fn byte_order_mark_before_a_job_file_is_skipped() {
    assert_eq!(built("\u{feff}[a]\nsize=8k\nbs=4k").jobs()[0].name, "a");
}

#[test]
fn job_without_file_uses_the_only_volume() {
    let load = built("[j]\nrw=randread\n[k]\nrw=read\nnumjobs=2\nsize=50%");
    assert_eq!(load.files().iter().map(|file| &file.name[..]).collect::<Vec<_>>(), ["sda"]);
    assert_eq!(load.notes(), ["`j`, `k`: no filename and no size, so all of `sda`"]);
    let several = on(&ten_volumes(), "[j]\nrw=randread").expect_err("which one is not said");
    assert_eq!(
        several,
        "test.fio:1: filename: the job names no disk: filename=/dev/data0 is a volume of the rig, which has `data0`, \
         `data1`, `data2`, `data3`, `data4`, `data5`, `data6`, `data7` and 2 more; size=1g makes a file"
    );
}

#[test]
fn nbd_export_selects_volume_by_name_or_the_only_one() {
    let job = |uri: &str| format!("[j]\nioengine=nbd\nuri={uri}\nrw=randread\nnumber_ios=4");
    let only = built(&job("nbd+unix:///other?socket=/tmp/disk"));
    assert_eq!(only.files()[0].name, "sda");
    for uri in ["nbd+unix:///data7?socket=/tmp/disk", "nbd://host:10809/data7"] {
        let load = on(&ten_volumes(), &job(uri)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((&load.files()[0].name[..], load.files()[0].volume), ("data7", 7), "{uri}");
    }
    let error = on(&ten_volumes(), &job("nbd://host/data77")).expect_err("there is none");
    assert!(error.contains("uri: the export `data77` is no volume of the rig"), "{error}");
}

#[test]
fn misspelled_volume_is_rejected_and_plain_file_is_noted() {
    for name in ["data99", "dta0", "dat0", "Data3"] {
        let error = on(&ten_volumes(), &format!("[j]\nfilename={name}\nsize=1m")).expect_err(name);
        assert!(
            error.contains(&format!("filename: `{name}` is no volume of the rig; did you mean `data")),
            "{error}"
        );
    }
    let error = on(&ten_volumes(), "[j]\nfilename=/dev/data99").expect_err("there is none");
    assert!(error.contains("did you mean `data9`?"), "{error}");
    let load =
        on(&ten_volumes(), "[j]\nfilename=table:./data99:/mnt/data99\nsize=3m").expect("these are files");
    assert_eq!(load.notes(), ["`table`, `./data99`, `/mnt/data99`: files on `data0`, the first volume"]);
}
