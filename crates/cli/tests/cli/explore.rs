//! `headstack explore`: the page is driven in a browser, and what it shows is asked of it.

use crate::browser::Browser;
use crate::common::{command, headstack, json, printed};
use headstack_prerequisites::{have_programs, have_tool};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A folder with a job of `requests` random reads, 16 of them outstanding, and the page of it.
fn saved(requests: u32, args: &[&str]) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (job, page) = (folder.path().join("job.fio"), folder.path().join("page.html"));
    let text = format!(
        "[load]\nrw=randrw\nrwmixread=80\nbs=4k\nioengine=libaio\ndirect=1\niodepth=16\nnorandommap\nnumber_ios={requests}\n"
    );
    std::fs::write(&job, text).expect("the folder is writable");
    let names = [&job, &page].map(|path| path.to_str().expect("its name is UTF-8").to_string());
    let common = ["explore", "atlas-10k", names[0].as_str(), "--save", names[1].as_str()];
    let done = headstack(&[&common, args].concat());
    let is_built = if done.err.contains("without the simulator for browsers") {
        Err("the target wasm32-unknown-unknown is not installed (scripts/install-test-packages)".to_string())
    } else {
        Ok(())
    };
    if !have_tool("the explorer", is_built) {
        return None;
    }
    assert_eq!(done.code, 0, "{}", done.err);
    Some((folder, page))
}

fn is_ready(state: &Value) -> bool {
    state["sides"][0]["completed"].is_number() && state["busy"] == false
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is a number"))
}

#[test]
fn slowest_request_and_its_cause_are_three_clicks_away() {
    let depth = ["--set", "drive.queue_depth=16", "--set", "drive.order=sptf", "--seed", "7"];
    let Some((_folder, page)) = saved(6000, &depth) else { return };
    let Some(browser) = Browser::start() else { return };
    browser.open_file(&page);
    browser.state_when("the page is ready", is_ready);
    browser.click("#end");
    let ended = browser.state_when("the run is at its end", |state| state["done"] == true && is_ready(state));
    assert_eq!(ended["sides"][0]["completed"], 6000);
    browser.click("#slowest");
    let shown = browser.state_when("the life of a request is shown", |state| !state["life"].is_null());
    let (request, slowest) = (&shown["life"]["request"], &shown["sides"][0]["slowest"][0]);
    assert_eq!(request, slowest);
    let parts: f64 = request["parts"].as_array().expect("it has parts").iter().map(number).sum();
    assert_eq!(parts, number(&request["response"]), "the parts add up");
    let text = browser.run("return document.getElementById('life').innerText");
    let text = text.as_str().expect("it is text");
    assert!(text.contains("of them were issued later: the order sptf chose them first"), "{text}");
    assert!(number(&shown["life"]["overtook"]) > number(&shown["life"]["before"]), "{shown}");
    assert_eq!(browser.run("return document.activeElement.id"), "life", "a screen reader reads it");
}

/// The results without what does not follow from the run: names of files, the rig's keys as they were written, the time of the processor.
fn measured(mut results: Value) -> Value {
    let object = results.as_object_mut().expect("results are an object");
    object.retain(|key, _| ["jobs", "disk_util", "headstack"].contains(&key.as_str()));
    let own = object["headstack"].as_object_mut().expect("it is an object");
    let others = ["rig", "rig_name", "cpu_s", "requests_per_cpu_s"];
    own.retain(|key, _| !others.contains(&key.as_str()));
    assert!(own.len() > 20, "{own:?}");
    results
}

#[test]
fn page_computes_the_results_of_the_command_to_the_last_bit() {
    let Some((folder, page)) = saved(3000, &["--set", "drive.queue_depth=8", "--seed", "3"]) else { return };
    let Some(browser) = Browser::start() else { return };
    browser.open_file(&page);
    browser.state_when("the page is ready", is_ready);
    browser.run("explorer.results(0)");
    let state = browser.state_when("the results are there", |state| !state["results"].is_null());
    assert_eq!(state["results"]["isGood"], true, "{}", state["results"]["text"]);
    let text = state["results"]["text"].as_str().expect("results are text");
    let in_page: Value = serde_json::from_str(text).expect("results are JSON");
    let job = folder.path().join("job.fio");
    let job = job.to_str().expect("its name is UTF-8");
    let native =
        json(&["sim", "atlas-10k", job, "--set", "drive.queue_depth=8", "--seed", "3", "--json", "-"]);
    assert!(number(&native["jobs"][0]["read"]["iops"]) > 50.0, "{native}");
    let (in_page, native) = (measured(in_page), measured(native));
    assert_eq!(in_page.to_string(), native.to_string());
}

#[test]
fn two_orders_stay_in_step_for_a_million_requests() {
    let orders =
        ["--set", "drive.order=fcfs", "--set", "drive.queue_depth=16", "--against", "drive.order=sptf"];
    let Some((_folder, page)) = saved(1_000_000, &orders) else { return };
    let Some(browser) = Browser::start() else { return };
    browser.open_file(&page);
    browser.state_when("the page is ready", is_ready);
    browser.click("#end");
    let mut least = 0.0;
    let mut memory = None;
    loop {
        let state = browser.state_when("more requests finish", |state| {
            state["done"] == true || number(&state["sides"][0]["completed"]) > least
        });
        let sides = [&state["sides"][0], &state["sides"][1]];
        for side in sides {
            assert_eq!(side["nowNs"], state["nowNs"]);
            let (next, now) = (number(&side["nextNs"]), number(&state["nowNs"]));
            assert!(next > now || next < 0.0, "all events up to {now} were handled, and none later: {next}");
            assert_eq!(side["differs"], false, "both runs have the same requests");
        }
        least = number(&sides[0]["completed"]) + 50_000.0;
        if memory.is_none() && number(&sides[0]["completed"]) > 200_000.0 {
            memory = Some(number(&state["memoryBytes"]));
        }
        if state["done"] == true {
            assert_eq!(
                (&sides[0]["completed"], &sides[1]["completed"]),
                (&1_000_000.into(), &1_000_000.into())
            );
            assert!(number(&sides[0]["compared"]) >= 1_000_000.0, "{}", sides[0]["compared"]);
            let early = memory.expect("the run was watched");
            assert!(
                number(&state["memoryBytes"]) <= early + 1_048_576.0,
                "{early} bytes, then {}",
                state["memoryBytes"]
            );
            return;
        }
    }
}

#[test]
fn keys_step_forward_and_back_to_the_same_state() {
    let Some((_folder, page)) = saved(500, &[]) else { return };
    let Some(browser) = Browser::start() else { return };
    browser.open_file(&page);
    browser.state_when("the page is ready", is_ready);
    browser.run("explorer.advance(5e8)");
    let before = browser
        .state_when("half a second has passed", |state| number(&state["nowNs"]) >= 5e8 && is_ready(state));
    browser.press(".");
    let stepped = browser.state_when("a step was made", |state| {
        number(&state["nowNs"]) > number(&before["nowNs"]) && is_ready(state)
    });
    browser.press(",");
    browser.state_when("it went back", |state| {
        number(&state["nowNs"]) < number(&stepped["nowNs"]) && is_ready(state)
    });
    browser.run(&format!("explorer.advance({})", stepped["nowNs"]));
    let again = browser.state_when("it came to the same time", |state| {
        state["nowNs"] == stepped["nowNs"] && is_ready(state)
    });
    for key in ["completed", "issued", "slowest", "last"] {
        assert_eq!(again["sides"][0][key], stepped["sides"][0][key], "{key}");
    }
}

#[test]
fn page_saved_in_the_browser_has_the_changed_experiment() {
    let Some((folder, page)) = saved(300, &[]) else { return };
    let Some(browser) = Browser::start() else { return };
    browser.open_file(&page);
    browser.state_when("the page is ready", is_ready);
    browser.run(
        "document.getElementById('order-0').value = 'c-look'; document.getElementById('seed').value = '12'",
    );
    browser.click("#setup button");
    let changed =
        browser.state_when("it restarted", |state| state["setup"]["seed"] == "12" && is_ready(state));
    assert_eq!(changed["sides"][0]["order"], "c-look");
    browser.run(
        "const make = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return make(blob); }",
    );
    browser.click("#save");
    browser.state_when("the page is saved", |_| browser.run("return window.saved ? 1 : 0") == 1);
    let copy = folder.path().join("copy.html");
    let text = browser.run("return window.saved");
    std::fs::write(&copy, text.as_str().expect("a page is text")).expect("the folder is writable");
    browser.open_file(&copy);
    let opened = browser.state_when("the copy is ready", is_ready);
    assert_eq!((&opened["setup"]["seed"], &opened["sides"][0]["order"]), (&"12".into(), &"c-look".into()));
}

#[test]
fn page_is_served_on_loopback_until_a_signal() {
    let Some((folder, page)) = saved(300, &[]) else { return };
    let job = folder.path().join("job.fio");
    let mut child = command(&["explore", "atlas-10k", job.to_str().expect("its name is UTF-8")])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output is a pipe"))
        .read_line(&mut line)
        .expect("it prints a line");
    let address = line.split(' ').next().expect("a line has a word");
    assert!(address.starts_with("http://127.0.0.1:"), "{line}");
    let served =
        ureq::get(address).call().expect("it answers").body_mut().read_to_string().expect("a page is text");
    assert_eq!(served, read(&page));
    let refused =
        ureq::get(address).header("Origin", "http://evil.example").call().expect_err("it is another site's");
    assert!(matches!(refused, ureq::Error::StatusCode(403)), "{refused}");
    let id = rustix::process::Pid::from_raw(child.id() as i32).expect("it has a number");
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
    assert!(child.wait().expect("it ends").success());
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the page was written")
}

/// Ends a command when the test ends, however it ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running command with metrics, and their address without a path.
fn running(args: &[&str]) -> (Ended, String) {
    let args = [args, &["--metrics", "127.0.0.1:0"]].concat();
    let mut child = command(&args).stdout(Stdio::piped()).spawn().expect("the command starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output is a pipe")).lines();
    let ended = Ended(child);
    let address = lines.find_map(|line| {
        let line = line.expect("it prints text");
        // A node lists further pages on the same line.
        Some(line.trim().strip_prefix("metrics: ")?.split_once("/metrics")?.0.to_string())
    });
    (ended, address.expect("it prints the address of its metrics"))
}

/// Runs commands of qemu-io on an export.
fn access(socket: &str, export: &str, commands: impl IntoIterator<Item = String>) {
    let mut program = Command::new("qemu-io");
    program.args(["-f", "raw"]);
    commands.into_iter().for_each(|command| {
        program.args(["-c", &command]);
    });
    let done = program.arg(format!("nbd+unix:///{export}?socket={socket}")).output().expect("qemu-io starts");
    let text = [done.stdout, done.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(done.status.success() && !text.contains("failed"), "{text}");
}

/// Chooses a disk of a live page as a user does, and waits for its first event.
fn choose(browser: &Browser, name: &str) -> Value {
    let option =
        format!("[...document.getElementById('disk').options].find((option) => option.text === '{name}')");
    browser.run(&format!(
        "const select = document.getElementById('disk'); select.value = {option}.value; select.dispatchEvent(new Event('change'))"
    ));
    browser.state_when("the page has an event of the disk", |state| {
        state["disk"] == name && state["sides"][0]["completed"].is_number()
    })
}

#[test]
fn each_running_disk_is_shown_live_with_its_zones_and_its_cleaning() {
    if !have_programs(&["qemu-io"]) {
        return;
    }
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let socket = folder.path().join("nbd").display().to_string();
    let disks = ["atlas-10k", "ultrastar-hc620", "seagate-archive-8tb"];
    let nbd = format!("unix:{socket}");
    let (_ended, address) = running(&[&["emulate"], &disks[..], &["--nbd", &nbd, "--speed", "20"]].concat());
    let found = printed(&["explore", &address]);
    assert_eq!(found, format!("{address}/explore shows the disks live\n"));
    browser.open(&format!("{address}/explore"));
    browser.state_when("the page has an event", |state| {
        state["sides"][0]["completed"] == 0 && state["live"] == true && state["disk"] == "disk0"
    });
    access(&socket, "disk0", (0..20).map(|number| format!("read {}M 64k", number * 397 + 1)));
    let state =
        browser.state_when("the page has the reads", |state| number(&state["sides"][0]["completed"]) >= 20.0);
    browser.state_when("the page draws", |later| number(&later["frames"]) > number(&state["frames"]) + 2.0);
    assert_eq!(
        browser.run("return document.getElementById('play').offsetParent"),
        Value::Null,
        "time is the disk's"
    );
    let slowest = &state["sides"][0]["slowest"][0];
    let parts: f64 = slowest["parts"].as_array().expect("it has parts").iter().map(number).sum();
    assert_eq!(parts, number(&slowest["response"]), "{slowest}");
    browser.click("#slowest");
    let shown = browser.state_when("the life of a request is shown", |state| !state["life"].is_null());
    assert_eq!(shown["life"]["request"]["submitted"], slowest["submitted"]);

    let zone = 256 << 20;
    let zoned = choose(&browser, "disk1");
    assert_eq!(zoned["sides"][0]["completed"], 0, "requests of the other disk are not counted");
    access(&socket, "disk1", [format!("write {} 64k", 600_u64 * zone)]);
    let expected = "55,880 zones: 524 conventional, 55,355 full, 1 implicitly open. Each cell is 110 zones; \
                    its height is the written share.";
    browser.state_when("the zone is open", |state| state["sides"][0]["shingles"][0] == expected);

    choose(&browser, "disk2");
    access(&socket, "disk2", ["write 1G 64k".to_string(), "flush".to_string()]);
    let cleaned = browser.state_when("a band is cleaned", |state| {
        state["sides"][0]["shingles"][0].as_str().is_some_and(|text| text.contains("; 1 bands cleaned in "))
    });
    assert!(
        cleaned["sides"][0]["shingles"][0]
            .as_str()
            .is_some_and(|text| text.contains("of the media cache is used"))
    );
    let label = browser.run("return document.querySelector('canvas.fill').getAttribute('aria-label')");
    assert!(label.as_str().is_some_and(|text| text.contains("bands cleaned")), "{label}");
    let refused = headstack(&["explore", "http://127.0.0.1:9"]);
    assert_eq!((refused.code, refused.err.lines().count()), (2, 1), "{}", refused.err);
}

#[test]
fn node_is_shown_live_with_its_streams_next_to_its_emulated_disk() {
    if !have_programs(&["qemu-io"]) {
        return;
    }
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let socket = folder.path().join("nbd").display().to_string();
    let nbd = format!("unix:{socket}");
    let serve = ["serve", "--emulate", "atlas-10k", "--disk", "memory:16M", "--nbd", &nbd];
    let (_ended, address) = running(&serve);
    assert_eq!(printed(&["explore", &address]), format!("{address}/explore shows the disks live\n"));
    browser.open(&format!("{address}/explore"));
    browser.state_when("the disk in memory has one panel, of its node", |state| {
        state["sides"][0]["node"].is_object()
            && state["sides"].as_array().is_some_and(|sides| sides.len() == 1)
    });
    let chosen = choose(&browser, "disk1");
    assert!(chosen["sides"][1].is_object(), "the emulated disk has the second panel");
    access(&socket, "disk1", (0..64).map(|number| format!("read {}k 64k", (1 << 20) + 64 * number)));
    let read = browser.state_when("the page has the stream", |state| {
        number(&state["sides"][0]["completed"]) >= 64.0
            && state["sides"][0]["node"]["list"][0].is_object()
            && number(&state["sides"][1]["completed"]) > 0.0
    });
    let (node, disk) = (&read["sides"][0], &read["sides"][1]);
    let sector_bytes = 512.0;
    let end = f64::from((1 << 20) + 64 * 64) * 1024.0 / sector_bytes;
    assert_eq!(
        number(&node["node"]["list"][0]["block"]),
        end,
        "the next block of the stream: {}",
        node["node"]
    );
    assert!(number(&node["lbn"]) >= end, "the node read ahead: {}", node["lbn"]);
    assert!(
        number(&disk["completed"]) < number(&node["completed"]),
        "commands read several requests' blocks"
    );
    let text = browser.run("return document.querySelector('.platters.node figcaption').innerText");
    let text = text.as_str().expect("it is text");
    assert!(text.ends_with("Where the arm of a disk is, its host does not know."), "{text}");
    let row = browser.run("return document.querySelector('.streams tbody tr').innerText");
    assert!(row.as_str().is_some_and(|row| row.starts_with("read\t")), "{row}");
    browser.click(".slow button");
    let shown = browser.state_when("the life of a request is shown", |state| !state["life"].is_null());
    let words = shown["life"]["words"].to_string();
    assert!(words.contains("was answered at") && words.contains("Meanwhile the disk ended"), "{words}");
}

#[test]
fn load_that_does_not_fit_is_rejected_before_a_page_is_made() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (job, page) = (folder.path().join("job.fio"), folder.path().join("page.html"));
    std::fs::write(&job, "[a]\nrw=randread\nbs=4k\nsize=1000t\n").expect("the folder is writable");
    let names = [&job, &page].map(|path| path.to_str().expect("its name is UTF-8").to_string());
    let done = headstack(&["explore", "atlas-10k", &names[0], "--save", &names[1]]);
    assert_eq!(done.code, 2, "{}", done.err);
    assert!(done.err.contains("size") && done.err.lines().count() == 1, "{}", done.err);
    assert!(!page.exists());
    std::fs::write(&job, "[a]\nrw=randread\nbs=4k\nnumber_ios=10\n").expect("the folder is writable");
    let done = headstack(&["explore", "atlas-10k", &names[0], "--against", "sptf", "--save", &names[1]]);
    assert_eq!(
        (done.code, done.err.as_str()),
        (2, "headstack: --against sptf: must be KEY=VALUE, such as drive.order=sptf\n")
    );
    assert!(printed(&["explore", "--help"]).contains("--against"));
}
