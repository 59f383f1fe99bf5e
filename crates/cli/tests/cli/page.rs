//! Pages in a real browser: are their charts drawn, without a network and without an error?

use crate::common::{headstack, printed};
use headstack_prerequisites::have_programs;
use std::process::Command;

/// The page as the browser draws it; nothing, and a recorded skip, where there is no browser.
pub(crate) fn drawn(page: &std::path::Path) -> Option<String> {
    if !have_programs(&["chromium"]) {
        return None;
    }
    let profile = tempfile::tempdir().expect("a folder can be made");
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-quic"])
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg("--enable-logging=stderr")
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Draws the page that a command writes: it must contain all charts, and `charts` of them.
fn is_drawn(args: &[&str], charts: usize, marks: &[(&str, usize)]) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (load, page) = (folder.path().join("load.fio"), folder.path().join("page.html"));
    let text = "[load]\nrw=randrw\nbs=4k\nsize=1g\nioengine=libaio\niodepth=16\nnumber_ios=2000\n";
    std::fs::write(&load, text).expect("the folder is writable");
    let named = [&load, &page].map(|path| path.to_string_lossy().into_owned());
    let args: Vec<&str> = args
        .iter()
        .map(|word| match *word {
            "LOAD" => named[0].as_str(),
            "PAGE" => named[1].as_str(),
            word => word,
        })
        .collect();
    printed(&args);
    let Some(document) = drawn(&page) else { return };
    let count = |what: &str| document.matches(what).count();
    assert_eq!((count("<figure>"), count("class=\"cartesianlayer")), (charts, charts), "{args:?}");
    for (mark, least) in marks {
        assert!(count(mark) >= *least, "{args:?}: {mark} {}", count(mark));
    }
}

#[test]
fn browser_draws_the_charts_of_a_simulation() {
    let marks = [("class=\"js-line\"", 12), ("class=\"point\"", 40)];
    is_drawn(&["sim", "atlas-10k", "LOAD", "--report", "PAGE"], 17, &marks);
}

#[test]
fn browser_draws_the_charts_of_a_comparison() {
    let marks = [("class=\"js-line\"", 10), ("class=\"point\"", 12), ("class=\"errorbar\"", 6)];
    let grid = ["--vary", "drive.order=fcfs,sptf", "--vary", "drive.queue_depth=1,16"];
    is_drawn(&[&["compare", "atlas-10k", "LOAD", "--report", "PAGE"], &grid[..]].concat(), 13, &marks);
}

#[test]
fn browser_draws_the_charts_of_a_study() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let out = folder.path().to_str().expect("its name is UTF-8");
    // A row of the study is off, so that the command fails after it has written the page.
    headstack(&["reproduce", "st2000dm006", "--quick", "--out", out]);
    let Some(document) = drawn(&folder.path().join("st2000dm006.html")) else { return };
    let count = |what: &str| document.matches(what).count();
    assert_eq!(count("class=\"scatterlayer"), 2, "charts drawn");
    assert!(count("class=\"js-line\"") >= 2 && count("class=\"point\"") >= 21);
}

#[test]
fn browser_draws_the_charts_of_the_demo() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    printed(&["demo", "--out", folder.path().to_str().expect("its name is UTF-8")]);
    let page = folder.path().join("demo.html");
    let Some(document) = drawn(&page) else { return };
    let count = |what: &str| document.matches(what).count();
    assert_eq!(count("class=\"scatterlayer"), 5, "charts drawn");
    assert!(count("class=\"js-line\"") >= 19, "a line for each series: {}", count("class=\"js-line\""));
}
