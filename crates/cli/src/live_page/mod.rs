//! `/explore`: shows running disks in a browser. The page does not poll: the endpoint sends the events of the shown disk as server-sent events.

mod disk;
mod node;
mod recent;

use crate::service::endpoint::{Feed, Page};
pub(crate) use disk::emulated;
pub(crate) use node::scheduled;
use recent::{RecentEvents, SideReader};
use serde_json::{Value, json};

/// A disk that the page can show.
pub(crate) struct LiveDisk {
    /// The label `disk` of its metrics.
    pub(crate) name: String,
    pub(crate) sides: Vec<LiveSide>,
}

/// What the page shows of a disk in one panel.
pub(crate) struct LiveSide {
    description: Value,
    reader: SideReader,
}

impl LiveSide {
    /// The same with another heading.
    pub(crate) fn with_heading(mut self, heading: String) -> LiveSide {
        self.description["heading"] = Value::String(heading);
        self
    }
}

/// The page, and a feed with the events of each disk; nothing without disks.
pub(crate) fn site(disks: Vec<LiveDisk>) -> (Vec<Page>, Vec<Feed>) {
    if disks.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let (mut listed, mut feeds) = (Vec::new(), Vec::new());
    for (number, LiveDisk { name, sides }) in disks.into_iter().enumerate() {
        let path = format!("/explore/events/{number}");
        let (descriptions, readers): (Vec<_>, Vec<_>) =
            sides.into_iter().map(|side| (side.description, side.reader)).unzip();
        listed.push(json!({ "name": name, "events": path, "sides": descriptions }));
        let recent = RecentEvents::new(readers);
        feeds.push(Feed { path, next: Box::new(move |seen: &mut u64| recent.after(seen)) });
    }
    let listed = Value::Array(listed).to_string();
    let text =
        move || Ok(headstack_explorer::live_page("Disks in real time", &listed, env!("CARGO_PKG_VERSION")));
    let page = Page { path: "/explore", kind: "text/html; charset=utf-8", text: Box::new(text), other: None };
    (vec![page], feeds)
}
