//! `/explore`: the disks live in a browser. The page polls nothing: it gets the events of the disks by server-sent events.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "several connections share what was read of the disks last"
)]

use crate::service::endpoint::{Feed, Page};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use headstack_explorer_wasm::{describe_running, rows, snapshot};
use headstack_host::disk::{Emulator, LiveEvent};
use headstack_host::{DiskHandle, LiveState};
use headstack_model::Instant;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{self, Duration};

/// Time that is shared by the events which several pages get: most of the time between two of a page's.
const SHARED: Duration = Duration::from_millis(40);
/// Events that are kept for pages which are late: a second.
const KEPT_MAX: usize = 20;

/// The page of the first disk, and its events. A disk that takes no time has nothing to show.
pub(super) fn site(disks: &[DiskHandle]) -> (Vec<Page>, Vec<Feed>) {
    let Some(disk) = disks.iter().find(|disk| disk.inspect(|emulator| emulator.engine().is_some())) else {
        return (Vec::new(), Vec::new());
    };
    let description = disk.inspect(describe);
    let text = move || {
        Ok(headstack_explorer::live_page("Disks in real time", &description, env!("CARGO_PKG_VERSION")))
    };
    let page = Page { path: "/explore", kind: "text/html; charset=utf-8", text: Box::new(text) };
    let reader = Arc::new(EventReader { disk: disk.clone(), last: Mutex::default() });
    let feed = Feed { path: "/explore/events", next: Box::new(move |seen: &mut u64| reader.after(seen)) };
    (vec![page], vec![feed])
}

fn describe(emulator: &Emulator) -> String {
    let volumes: Vec<_> = emulator.volumes().iter().map(|volume| volume.info().clone()).collect();
    emulator.engine().map(|engine| describe_running(&volumes, engine).to_string()).unwrap_or_default()
}

/// Reads the events of a disk for all pages.
struct EventReader {
    disk: DiskHandle,
    last: Mutex<RecentEvents>,
}

/// The events that were read last, each as the text that pages get.
#[derive(Default)]
struct RecentEvents {
    texts: VecDeque<String>,
    /// The number of the newest text; the first is 1.
    newest: u64,
    read: Option<time::Instant>,
}

impl EventReader {
    /// The texts after the one with the number `seen`, which becomes the newest. A page that is late gets those that are kept.
    fn after(&self, seen: &mut u64) -> Vec<String> {
        let mut kept = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.read.is_none_or(|read| read.elapsed() >= SHARED) {
            kept.read = Some(time::Instant::now());
            self.read(&mut kept);
        }
        // A page that has just opened needs no past: the newest text has the state of the disk.
        let missed = if *seen == 0 { 1 } else { kept.newest.saturating_sub(*seen) as usize };
        *seen = kept.newest;
        kept.texts.iter().skip(kept.texts.len().saturating_sub(missed)).cloned().collect()
    }

    /// Reads what happened since the last time and the state of the disk. The disk waits only while they are copied.
    fn read(&self, kept: &mut RecentEvents) {
        let LiveState { events, state } = self.disk.live_state(numbers);
        let mut message = vec![state[0], state[1], 0.0];
        events.iter().for_each(|event| add_row(event, &mut message));
        message[2] = (message.len() - 3) as f64;
        message.extend_from_slice(&state[2..]);
        let bytes: Vec<u8> = message.iter().flat_map(|number| number.to_le_bytes()).collect();
        kept.newest += 1;
        kept.texts.push_back(STANDARD.encode(bytes));
        if kept.texts.len() > KEPT_MAX {
            kept.texts.pop_front();
        }
    }
}

/// Time, number of dropped events, and the state of the devices.
fn numbers(emulator: &Emulator, now: Instant, dropped: u64) -> Vec<f64> {
    let mut numbers = vec![now.0 as f64, dropped as f64];
    if let Some(engine) = emulator.engine() {
        snapshot::add_all(engine, now.0 as f64, &mut numbers);
    }
    numbers
}

fn add_row(event: &LiveEvent, into: &mut Vec<f64>) {
    match event {
        LiveEvent::Issued(at, issue) => into.extend_from_slice(&rows::issue(*at, issue)),
        LiveEvent::Finished(finished) => into.extend_from_slice(&rows::finish(finished)),
        LiveEvent::Access(device, record) => into.extend_from_slice(&rows::access(*device, record)),
    }
}
