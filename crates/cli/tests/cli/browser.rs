//! A browser that a test drives: Debian's chromedriver, which speaks WebDriver over HTTP. The tests need five of its commands, for which
//! `ureq`, a dependency of the command, is enough.

use headstack_prerequisites::have_programs;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for a page, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(240);

pub(crate) struct Browser {
    driver: Child,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// A browser; nothing, and a recorded skip, where there is none.
    pub(crate) fn start() -> Option<Browser> {
        if !have_programs(&["chromium", "chromedriver"]) {
            return None;
        }
        let profile = tempfile::tempdir().expect("a folder can be made");
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let mut lines = BufReader::new(driver.stdout.take().expect("its output is a pipe")).lines();
        let port = lines.find_map(|line| {
            let line = line.expect("it prints text");
            Some(line.split_once("successfully on port ")?.1.trim_end_matches('.').to_string())
        });
        // The rest of the output is read, so that the driver never waits for it.
        thread::spawn(move || lines.count());
        let args = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
        ]
        .map(str::to_string)
        .into_iter()
        .chain([format!("--user-data-dir={}", profile.path().display())]);
        let options = json!({ "args": args.collect::<Vec<_>>() });
        let wanted = json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": options } } });
        let base = format!("http://127.0.0.1:{}/session", port.expect("it says its port"));
        let mut browser = Browser { driver, session: base, _profile: profile };
        let made = browser.post("", &wanted);
        let id = made["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {made}"));
        browser.session = format!("{}/{id}", browser.session);
        Some(browser)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        let url = format!("{}{path}", self.session);
        let mut answer = ureq::Agent::new_with_config(config)
            .post(&url)
            .header("Content-Type", "application/json")
            .send(body.to_string())
            .unwrap_or_else(|error| panic!("{url}: {error}"));
        let text =
            answer.body_mut().with_config().limit(64 << 20).read_to_string().expect("it answers with text");
        let answer: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{url}: {error}: {text}"));
        assert!(answer["value"]["error"].is_null(), "{url}: {answer}");
        answer["value"].clone()
    }

    pub(crate) fn open(&self, address: &str) {
        self.post("/url", &json!({ "url": address }));
    }

    pub(crate) fn open_file(&self, page: &Path) {
        self.open(&format!("file://{}", page.display()));
    }

    /// The value of the script's `return`.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Clicks the element that a selector finds, as a user does: it must be visible and enabled.
    pub(crate) fn click(&self, selector: &str) {
        let found = self.post("/element", &json!({ "using": "css selector", "value": selector }));
        let id = found.as_object().and_then(|object| object.values().next()).and_then(Value::as_str);
        self.post(&format!("/element/{}/click", id.expect("an element has a number")), &json!({}));
    }

    /// Presses a key in the page.
    pub(crate) fn press(&self, key: &str) {
        let actions = json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        self.post(
            "/actions",
            &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }),
        );
    }

    /// The state that the page shows, once `is_met` holds for it.
    pub(crate) fn state_when(&self, what: &str, is_met: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let text = self.run("return window.explorer ? JSON.stringify(explorer.state()) : 'null'");
            let state: Value = serde_json::from_str(text.as_str().expect("it is text")).expect("it is JSON");
            assert!(state["fault"].is_null(), "{}", state["fault"]);
            if !state.is_null() && is_met(&state) {
                return state;
            }
            assert!(begun.elapsed() < PATIENCE, "{what}: {state}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Without the session, the driver ends its browser. What fails here has failed the test before.
        let _ = ureq::delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
