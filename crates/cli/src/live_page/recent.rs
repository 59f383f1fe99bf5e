//! The latest events of a disk, for all pages that show it.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "several connections share what was read of the disk last"
)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Reads the events since the last call as numbers: time, dropped events, length of the rows, rows, state.
pub(super) type SideReader = Box<dyn FnMut() -> Vec<f64> + Send>;

/// Minimum time between two reads. Pages that ask within it share an event. It is most of the time between two events of a page.
const SHARED: Duration = Duration::from_millis(40);
/// Number of events kept for pages that are late: about a second.
const KEPT_MAX: usize = 20;

pub(super) struct RecentEvents(Mutex<SharedEvents>);

struct SharedEvents {
    /// The readers of the panels, in their order.
    readers: Vec<SideReader>,
    /// Each event as the text that pages get. Its first line is its number, from which a page sees that it missed some. A line for each panel
    /// follows, with its numbers in base64.
    texts: VecDeque<String>,
    /// The number of the newest text; the first is 1.
    newest: u64,
    read: Option<Instant>,
}

impl RecentEvents {
    pub(super) fn new(readers: Vec<SideReader>) -> RecentEvents {
        RecentEvents(Mutex::new(SharedEvents { readers, texts: VecDeque::new(), newest: 0, read: None }))
    }

    /// The texts behind number `seen`, and sets `seen` to the newest number. A page that is late gets those that are still kept.
    pub(super) fn after(&self, seen: &mut u64) -> Vec<String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.read.is_none_or(|read| read.elapsed() >= SHARED) {
            kept.read = Some(Instant::now());
            kept.read();
        }
        // A page that has just opened needs only the newest text, which has the state of the disk.
        let missed = if *seen == 0 { 1 } else { kept.newest.saturating_sub(*seen) as usize };
        *seen = kept.newest;
        kept.texts.iter().skip(kept.texts.len().saturating_sub(missed)).cloned().collect()
    }
}

impl SharedEvents {
    fn read(&mut self) {
        let lines = self.readers.iter_mut().map(|read| {
            let bytes: Vec<u8> = read().iter().flat_map(|number| number.to_le_bytes()).collect();
            STANDARD.encode(bytes)
        });
        self.newest += 1;
        let text = std::iter::once(self.newest.to_string()).chain(lines).collect::<Vec<_>>().join("\n");
        self.texts.push_back(text);
        if self.texts.len() > KEPT_MAX {
            self.texts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_page_gets_the_newest_event_and_a_late_page_a_second_of_them() {
        let mut next = 0.0;
        let count = move || {
            next += 1.0;
            vec![next]
        };
        let recent = RecentEvents::new(vec![Box::new(count), Box::new(|| vec![7.0])]);
        let read = || recent.0.lock().unwrap_or_else(PoisonError::into_inner).read();
        (0..30).for_each(|_| read());
        let line = |number: f64| STANDARD.encode(number.to_le_bytes());
        let mut seen = 0;
        let first = recent.after(&mut seen);
        assert_eq!(first.len(), 1, "{first:?}");
        let lines: Vec<_> = first[0].lines().collect();
        assert_eq!((lines.len(), lines[0], lines[2]), (3, seen.to_string().as_str(), line(7.0).as_str()));
        let mut late = 3;
        assert_eq!((recent.after(&mut late).len(), late), (KEPT_MAX, seen));
    }
}
