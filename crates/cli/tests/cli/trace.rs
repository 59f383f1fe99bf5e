//! `headstack trace` on traces made here and on the real ones.

use crate::common::{headstack, json, printed, refused};
use crate::page::drawn;
use std::fs;
use std::path::PathBuf;

/// A folder with a DiskSim trace of 300 requests in 3 s to two devices, and the trace's name.
fn made() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let line = |index: u64| {
        let (ms, us) = (index * 10, index % 7);
        let device = if index.is_multiple_of(4) { 7 } else { 3 };
        let lbn = index * 7_919 % 100_000;
        format!("{ms}.00{us}000\t{device}\t{lbn}\t8\t{}\n", index % 3)
    };
    let path = folder.path().join("made.trace");
    fs::write(&path, (0..300).map(line).collect::<String>().replace("\t2\n", "\t0\n"))
        .expect("it is writable");
    let name = path.to_string_lossy().into_owned();
    (folder, name)
}

fn inside(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).to_string_lossy().into_owned()
}

/// A real trace, if there are any.
fn real(name: &str) -> Option<String> {
    let folder = headstack_prerequisites::reference_data("disksim/traces")?;
    Some(folder.join(name).to_string_lossy().into_owned())
}

#[test]
fn stat_reports_counts_sizes_and_devices_of_a_trace() {
    let (_folder, trace) = made();
    let found = json(&["trace", "stat", &trace, "--json"]);
    assert_eq!((found["format"].as_str(), found["requests"].as_u64()), (Some("disksim"), Some(300)));
    assert_eq!(found["kinds"][0]["requests"], 100);
    assert_eq!(found["devices"], 2);
    assert_eq!(found["size_bytes"]["p50"], 4096.0);
    assert_eq!(found["busiest_devices"][0]["device"], "3");
    assert!(found["queue_depth"].is_null());
    let text = printed(&["trace", "stat", &trace]);
    for heading in ["In all", "Mix", "Distributions", "Over time", "Hottest regions", "Busiest devices"] {
        assert!(text.contains(&format!("\n{heading}\n")), "{heading}: {text}");
    }
}

#[test]
fn stat_counts_the_requests_of_a_workstation_week() {
    let Some(week) = real("ajw.1week.srt") else { return };
    let found = json(&["trace", "stat", &week, "--json"]);
    assert_eq!(found["requests"], 44_519);
    assert_eq!(
        (&found["kinds"][0]["requests"], &found["kinds"][1]["requests"]),
        (&13_040.into(), &31_479.into())
    );
    assert_eq!(found["queue_depth"]["max"], 104);
}

#[test]
fn trace_survives_conversion_through_other_formats() {
    let (folder, trace) = made();
    let original = fs::read(&trace).expect("it was written");
    for (name, to) in
        [("a.spc.gz", "spc"), ("b.csv.zst", "headstack"), ("c.bin", "blktrace"), ("d.txt", "blkparse")]
    {
        let (there, back) = (inside(&folder, name), inside(&folder, "back.ascii"));
        let said = headstack(&["trace", "convert", &trace, &there, "--to", to]);
        assert_eq!((said.code, said.out.as_str()), (0, ""), "{}", said.err);
        assert!(said.err.starts_with(&format!("300 requests to {there}, ")), "{}", said.err);
        printed(&["trace", "convert", &there, &back]);
        assert_eq!(fs::read(&back).expect("it was written"), original, "{to}");
    }
    assert_eq!(printed(&["trace", "convert", &trace, "-", "--to", "disksim"]).as_bytes(), original);
}

#[test]
fn conversion_reports_the_fields_a_format_drops() {
    let (folder, _) = made();
    let (from, to) = (inside(&folder, "in.csv"), inside(&folder, "out.spc"));
    let head = "time_ns,device,op,offset,bytes,response_ns,think_ns,process\n";
    let lines = "5,sda,read,0,512,70,,9\n6,sda,flush,0,0,,,\n7,sda,trim,512,512,,,\n8,sda,write,100,512,,,\n";
    fs::write(&from, format!("{head}{lines}")).expect("it is writable");
    let said = headstack(&["trace", "convert", &from, &to]);
    let expected = format!(
        "2 requests to {to}, SPC-1 (UMass)\n  1 flushes left out\n  1 trims left out\n  1 requests widened to whole \
         sectors\n  1 response times left out\n  1 processes left out\n"
    );
    assert_eq!((said.code, said.err), (0, expected));
    assert_eq!(
        fs::read_to_string(&to).expect("it was written"),
        "0,0,512,R,0.000000005\n0,0,612,W,0.000000008\n"
    );
}

#[test]
fn cut_keeps_requests_within_time_device_and_offset() {
    let (folder, trace) = made();
    let part = inside(&folder, "part.trace");
    let count = |args: &[&str]| {
        let said = headstack(&[&["trace", "cut", &trace, &part], args].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        fs::read_to_string(&part).expect("it was written").lines().count()
    };
    assert_eq!(count(&["--from", "1s", "--to", "2s"]), 100);
    assert_eq!(count(&["--device", "7"]), 75);
    let low = count(&["--to-offset", "10M"]);
    assert!((1..300).contains(&low) && low + count(&["--from-offset", "10M"]) == 300, "{low}");
    let tenth = count(&["--share", "0.1", "--seed", "3"]);
    assert!((15..50).contains(&tenth), "{tenth}");
}

#[test]
fn cut_of_a_closed_trace_fills_gaps_with_think_time() {
    let (folder, _) = made();
    let (whole, part) = (inside(&folder, "whole.trace"), inside(&folder, "part.trace"));
    fs::write(&whole, "R Hit 1 1 10 20\nR Hit 2 1 10 30\nR Hit 3 1 10 40\n").expect("it is writable");
    printed(&["trace", "cut", &whole, &part, "--from-offset", "100"]);
    printed(&["trace", "cut", &whole, &part, "--share", "0.6", "--seed", "7"]);
    let kept = fs::read_to_string(&part).expect("it was written");
    assert!(!kept.is_empty() && kept.lines().count() < 3, "{kept}");
    let gaps: f64 = kept.lines().filter_map(|line| line.split_whitespace().last()?.parse::<f64>().ok()).sum();
    assert!(gaps == 0.0 || gaps == 20.0 || gaps == 30.0 || gaps == 60.0, "{kept}");
}

#[test]
fn malformed_trace_line_is_rejected_unless_skipped() {
    let (folder, trace) = made();
    let text = fs::read_to_string(&trace).expect("it was written");
    let (bad, out) = (inside(&folder, "bad.trace"), inside(&folder, "out.spc"));
    let mut lines: Vec<&str> = text.lines().collect();
    lines[41] = "420 3 x 8 1";
    fs::write(&bad, lines.join("\n")).expect("it is writable");
    let line = format!("{bad}: line 42: lbn is `x`, where a whole number below 2^54 is allowed");
    assert_eq!(refused(&["trace", "stat", &bad], 2), format!("headstack: {line}"));
    assert_eq!(refused(&["trace", "convert", &bad, &out], 2), format!("headstack: {line}"));
    assert!(!PathBuf::from(&out).exists(), "nothing half-written stays behind");
    let said = printed(&["trace", "stat", &bad, "--skip-bad", "1"]);
    assert!(said.contains(&format!("1 malformed passed over, the first: {line}")), "{said}");
    assert_eq!(json(&["trace", "stat", &bad, "--skip-bad", "1", "--json"])["malformed"], 1);
}

#[test]
fn truncated_trace_is_rejected_in_one_line() {
    let Some(week) = real("ajw.1week.srt") else { return };
    let (folder, _) = made();
    let short = inside(&folder, "short.srt");
    let bytes = fs::read(&week).expect("it is there");
    fs::write(&short, &bytes[..1_000_000]).expect("it is writable");
    let expected =
        format!("headstack: {short}: byte 999956: the trace ends after 44 of the 56 bytes of a record");
    assert_eq!(refused(&["trace", "stat", &short], 2), expected);
}

#[test]
fn wrong_trace_usage_is_rejected_in_one_line() {
    let (folder, trace) = made();
    let out = inside(&folder, "out.csv");
    let said = |args: &[&str]| refused(&[&["trace"], args].concat(), 2);
    assert_eq!(
        said(&["convert", &trace, &out]),
        format!(
            "headstack: {out}: several formats end so: choose with --to msr|alibaba|tencent|headstack|table"
        )
    );
    assert!(said(&["convert", &trace, &out, "--to", "tape"]).contains("invalid value 'tape'"));
    assert!(said(&["stat", "/nowhere/at.all"]).contains("/nowhere/at.all: No such file"));
    assert!(said(&["cut", &trace, &out, "--share", "2"]).contains("the share is 2, where more than 0"));
    assert!(said(&["cut", &trace, &out, "--from", "soon"]).contains("such as 90s, 2h 30m"));
    let other = inside(&folder, "other.txt");
    fs::write(&other, "dear diary\n").expect("it is writable");
    assert!(
        said(&["stat", &other]).contains("no known format begins like this; name one of disksim, validate")
    );
}

#[test]
fn format_list_names_the_common_formats() {
    let text = printed(&["trace", "formats"]);
    for name in ["disksim", "srt", "vscsi2", "blkparse", "iolog3", "headstack"] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}");
    }
}

#[test]
fn browser_draws_the_charts_of_a_trace() {
    let (folder, trace) = made();
    let page = folder.path().join("page.html");
    printed(&["trace", "plot", &trace, "-o", &page.to_string_lossy()]);
    let Some(document) = drawn(&page) else { return };
    assert_eq!(document.matches("class=\"scatterlayer").count(), 9, "charts drawn");
}

/// A trace of MSR's with times as they have them, since 1601, and the name of the file.
fn msr(folder: &tempfile::TempDir) -> String {
    let line = |index: u64| {
        let time = 128_166_372_003_061_629 + index * 50_000;
        format!("{time},usr,0,Read,{},4096,5000\n", index * 8192)
    };
    let path = inside(folder, "msr.csv");
    fs::write(&path, (0..40).map(line).collect::<String>()).expect("it is writable");
    path
}

#[test]
fn unrepresentable_times_are_rebased_to_the_first_request() {
    let (folder, _) = made();
    let trace = msr(&folder);
    for format in ["srt", "spc", "vscsi1", "vscsi2", "blkparse", "blktrace", "disksim"] {
        let out = inside(&folder, "out");
        let done = headstack(&["trace", "convert", &trace, &out, "--to", format]);
        assert_eq!(done.code, 0, "{format}: {}", done.err);
        assert!(done.err.starts_with("40 requests to "), "{format}: {}", done.err);
        let found = json(&["trace", "stat", &out, "--format", format, "--json"]);
        assert_eq!(found["requests"], 40, "{format}");
        if done.err.contains("--from-zero") {
            assert!(
                done.err.contains("times counted from the first request (--from-zero): "),
                "{}",
                done.err
            );
        }
    }
    let done = headstack(&["trace", "convert", &trace, &inside(&folder, "out"), "--to", "spc"]);
    assert!(done.err.contains("SPC-1 (UMass) cannot say its 12816637200 s"), "{}", done.err);
}

#[test]
fn conversion_that_drops_every_request_is_rejected() {
    let (folder, _) = made();
    let (from, to) = (inside(&folder, "in.csv"), inside(&folder, "out.spc"));
    let head = "time_ns,device,op,offset,bytes,response_ns,think_ns,process\n";
    fs::write(&from, format!("{head}6,sda,flush,0,0,,,\n7,sda,trim,512,512,,,\n")).expect("it is writable");
    let said = refused(&["trace", "convert", &from, &to], 2);
    assert!(
        said.contains("SPC-1 (UMass) can say no request of it: 1 flushes left out, 1 trims left out"),
        "{said}"
    );
    assert!(!PathBuf::from(&to).exists());
}

#[test]
fn cut_of_an_unknown_device_is_rejected_with_the_known_ones() {
    let (folder, trace) = made();
    let out = inside(&folder, "out.trace");
    let said = refused(&["trace", "cut", &trace, &out, "--device", "nosuch"], 2);
    assert!(said.contains("no device is called `nosuch`; there are 3, 7"), "{said}");
    let said = refused(&["trace", "cut", &trace, &out, "--from", "1h"], 2);
    assert!(said.contains("none of its 300 requests is in the chosen part"), "{said}");
    assert!(!PathBuf::from(&out).exists());
}

#[test]
fn trace_with_a_heading_line_is_rejected_with_a_remedy() {
    let (folder, _) = made();
    let text = fs::read_to_string(msr(&folder)).expect("it was written");
    let path = inside(&folder, "headed.csv");
    fs::write(&path, format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n{text}"))
        .expect("it is writable");
    let said = refused(&["trace", "stat", &path], 2);
    assert!(said.contains("the first line is no request, and the rest looks like MSR Cambridge CSV: --format msr --skip-bad 1"), "{said}");
    assert!(printed(&["trace", "stat", &path, "--format", "msr", "--skip-bad", "1"]).contains("40"));
    printed(&["trace", "convert", &path, &inside(&folder, "o.spc"), "--format", "msr", "--skip-bad", "1"]);
}

#[test]
fn table_with_own_columns_is_converted_there_and_back() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (own, tsv, back) = (inside(&folder, "own.csv"), inside(&folder, "a.tsv"), inside(&folder, "b.csv"));
    fs::write(&own, "when,where,n,what,extra\n1500,16,8,R,x\n2500,24,8,W,y\n").expect("it is writable");
    let columns = "time_us=when,lba=where,sectors=n,op=what";
    printed(&["trace", "convert", &own, &tsv, "--columns", columns]);
    printed(&["trace", "convert", &tsv, &back, "--to", "headstack"]);
    let text = fs::read_to_string(&back).expect("it was written");
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows, ["1500000,disk,read,8192,4096,,,", "2500000,disk,write,12288,4096,,,"]);
    let error = refused(&["trace", "stat", &own, "--columns", "lba=wher"], 2);
    assert!(error.contains("the header has no column `wher`; it has when, where, n, what, extra"), "{error}");
}

#[test]
fn json_is_valid_whatever_bytes_names_have() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let name = "d\u{7f}\u{202e}\u{85}sk0";
    let log = inside(&folder, "a.log");
    let text = format!(
        "fio version 3 iolog\n0 {name} add\n0 {name} open\n1 {name} read 0 4096\n2 {name} read 8192 4096\n"
    );
    fs::write(&log, text).expect("it is writable");
    let found = json(&["trace", "stat", &log, "--json"]);
    assert_eq!(found["requests"], 2);
    let job = inside(&folder, "j.fio");
    fs::write(&job, format!("[{name}]\nrw=randread\nsize=1m\nnumber_ios=20\n")).expect("it is writable");
    let found = json(&["sim", "atlas-10k", &job, "--json", "-"]);
    assert_eq!(found["jobs"][0]["jobname"], name);
}
