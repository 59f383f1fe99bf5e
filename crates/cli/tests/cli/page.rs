//! The demo's page in a real browser: are its charts drawn, without a network?

use crate::common::printed;
use std::process::Command;

/// What the browser makes of the page, if there is a browser.
pub(crate) fn drawn(page: &std::path::Path) -> Option<String> {
    let profile = tempfile::tempdir().expect("a folder can be made");
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-quic"])
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn does_a_browser_draw_the_demos_charts() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    printed(&["demo", "--out", folder.path().to_str().expect("its name is UTF-8")]);
    let page = folder.path().join("demo.html");
    let Some(document) = drawn(&page) else {
        eprintln!("SKIPPED: chromium is not installed, so the demo's page is not drawn");
        return;
    };
    let count = |what: &str| document.matches(what).count();
    assert_eq!(count("class=\"scatterlayer"), 5, "charts drawn");
    assert!(count("class=\"js-line\"") >= 19, "a line for each series: {}", count("class=\"js-line\""));
}
