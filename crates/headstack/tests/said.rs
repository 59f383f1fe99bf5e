//! What results say next to their figures: what the run had, what is suspicious, and how writes and flushes are counted.

use headstack::{NoFiles, Results, Rig, Simulation, Workload, load_rig};
use serde_json::Value;

fn rig(name: &str, keys: &[(&str, &str)]) -> Rig {
    let mut rig = load_rig(name, &NoFiles).unwrap_or_else(|error| panic!("{error}"));
    rig.set_all(keys.iter().copied()).unwrap_or_else(|error| panic!("{error}"));
    rig
}

fn run(rig: &Rig, job: &str) -> Results {
    let workload = Workload::fio_job(job, "job.fio", &NoFiles).unwrap_or_else(|error| panic!("{error}"));
    Simulation::new(rig, workload, 0).and_then(Simulation::run).unwrap_or_else(|error| panic!("{error}"))
}

fn notes(results: &Results) -> Vec<&'static str> {
    results.notes().iter().map(|note| note.name).collect()
}

const DIRECT: &str = "[a]\nfilename=disk0\nioengine=libaio\ndirect=1\n";

fn job(keys: &str) -> String {
    format!("{DIRECT}{keys}\n")
}

#[test]
fn setup_names_write_cache_fua_order_depth_scheduler_and_page_cache() {
    let line = |name: &str, keys: &[(&str, &str)]| {
        run(&rig(name, keys), &job("rw=read\nbs=4k\nnumber_ios=1")).setup.line().expect("a rig has one")
    };
    let fcfs = [("drive.order", "fcfs"), ("drive.queue.depth", "4")];
    assert_eq!(
        line("wd800jd", &fcfs),
        "write cache on, without FUA, order fcfs, depth 4; host: no scheduler, no page cache"
    );
    let host = [
        fcfs[0],
        fcfs[1],
        ("host.fua", "true"),
        ("host.queue.elevator", "bfq"),
        ("host.page_cache.memory_mb", "64"),
    ];
    assert_eq!(
        line("wd800jd", &host),
        "write cache on, with FUA, order fcfs, depth 4; host: scheduler bfq, page cache of 64 MiB"
    );
    let off = [fcfs[0], fcfs[1], ("drive.cache.write_cache", "none")];
    assert_eq!(
        line("wd800jd", &off),
        "write cache off, order fcfs, depth 4; host: no scheduler, no page cache"
    );
    assert_eq!(
        line("hp-c3323a", &fcfs),
        "no write cache, order fcfs, depth 4; host: no scheduler, no page cache"
    );
}

#[test]
fn json_has_setup_notes_and_rates_by_kind() {
    let results = run(&rig("wd800jd", &[]), &job("rw=randwrite\nbs=4k\nnumber_ios=200\nfsync=1"));
    let object = results.to_object();
    let drive = &object["setup"]["drives"][0];
    assert_eq!(drive["write_cache"], "on");
    assert_eq!(drive["fua"], false);
    assert_eq!(object["setup"]["page_cache_mb"], Value::Null);
    assert_eq!(object["notes"], Value::Array(Vec::new()));
    let number = |key: &str| object[key].as_f64().expect("it is a number");
    assert_eq!(number("iops"), number("write_iops"));
    assert_eq!(number("read_iops"), 0.0);
    assert!(number("flushes_per_s") > 0.9 * number("write_iops"), "one flush after each write");
    let interval = object["confidence"]["iops"]["mean"].as_f64().expect("there are enough requests");
    assert!((interval / number("iops") - 1.0).abs() < 0.1, "{interval} is of writes alone");
}

#[test]
fn flush_at_the_end_is_part_of_the_time_of_the_writes() {
    let text = |keys: &str| job(&format!("rw=write\nbs=64k\nsize=8m\n{keys}"));
    let of_writes = |keys: &str| {
        let results = run(&rig("wd800jd", &[]), &text(keys));
        let document: Value = serde_json::from_str(&results.to_json()).expect("it is JSON");
        let write = &document["jobs"][0]["write"];
        let whole_ms = results.counted_s() * 1e3;
        let ms = write["runtime"].as_f64().expect("it is a number");
        (ms, write["bw_bytes"].as_f64().expect("it is a number"), whole_ms)
    };
    let (without_ms, without_bw, _) = of_writes("end_fsync=0");
    let (with_ms, with_bw, whole_ms) = of_writes("end_fsync=1");
    assert!((with_ms - whole_ms).abs() <= 1.0, "{with_ms} and {whole_ms} ms");
    assert!(with_ms > 1.2 * without_ms && with_bw < without_bw / 1.2, "{with_ms} and {without_ms} ms");
    assert!((with_bw - 8.0 * 1048576e3 / whole_ms).abs() < 0.01 * with_bw, "{with_bw}");
}

#[test]
fn stream_below_a_tenth_of_the_media_rate_is_noted_with_the_cause() {
    let slow =
        [("drive.overhead.after_read.read_hit_ms", "9"), ("drive.overhead.after_write.read_hit_ms", "9")];
    let stream = job("rw=read\nbs=4k\nnumber_ios=400");
    let results = run(&rig("wd800jd", &slow), &stream);
    assert_eq!(notes(&results), ["slow-stream"]);
    let text = &results.notes()[0].text;
    assert!(text.contains("is overhead; look at") && text.contains("drive.overhead"), "{text}");
    assert!(notes(&run(&rig("wd800jd", &[]), &job("rw=read\nbs=64k\nnumber_ios=400"))).is_empty());
    // Random reads are slow for another reason, and pauses are the load's own.
    assert!(notes(&run(&rig("wd800jd", &slow), &job("rw=randread\nbs=4k\nnumber_ios=400"))).is_empty());
    let paused = job("rw=read\nbs=4k\nnumber_ios=400\nthinktime=20000");
    assert!(notes(&run(&rig("wd800jd", &[]), &paused)).is_empty());
    // A write that must be on the media before the next takes a revolution on any disk.
    let synced = job("rw=write\nbs=4k\nnumber_ios=400\nfsync=1");
    assert!(notes(&run(&rig("wd800jd", &[]), &synced)).is_empty());
    let through = [("drive.cache.write_cache", "none")];
    assert!(notes(&run(&rig("wd800jd", &through), &job("rw=write\nbs=4k\nnumber_ios=400"))).is_empty());
}

#[test]
fn command_that_linux_would_reset_is_noted() {
    let deep = [("drive.bus.interface", "sas"), ("drive.queue.depth", "1024"), ("drive.order", "fcfs")];
    let results = run(&rig("wd800jd", &deep), &job("rw=randread\nbs=4m\niodepth=1024\nnumber_ios=1024"));
    assert_eq!(notes(&results), ["link-reset"]);
    let text = &results.notes()[0].text;
    assert!(text.contains("Linux gives it 30 s") && text.contains("drive.queue.age_limit_ms"), "{text}");
    // Requests that wait in the host wait for no command.
    let shallow = [("drive.queue.depth", "1")];
    let waiting = run(&rig("wd800jd", &shallow), &job("rw=randread\nbs=4m\niodepth=1024\nnumber_ios=1024"));
    assert!(notes(&waiting).is_empty());
}

#[test]
fn buffered_job_without_a_page_cache_is_noted() {
    let buffered = "[a]\nfilename=disk0\nrw=read\nbs=64k\nnumber_ios=10\n";
    let results = run(&rig("wd800jd", &[]), buffered);
    assert_eq!(notes(&results), ["buffered-without-page-cache"]);
    assert!(results.notes()[0].text.starts_with("host.page_cache is not set: buffered I/O ran without"));
    assert!(notes(&run(&rig("wd800jd", &[("host.page_cache.memory_mb", "64")]), buffered)).is_empty());
    assert!(notes(&run(&rig("wd800jd", &[]), &job("rw=read\nbs=64k\nnumber_ios=10"))).is_empty());
}
