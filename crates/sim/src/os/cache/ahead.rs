//! Read-ahead: which pages to read in addition when a reader misses, or reaches a marked page.
//!
//! A window of pages runs ahead of a sequential reader. It begins slightly larger than the request, doubles or quadruples up to
//! its limit, and is requested when the reader reaches its marked page, which is before it needs the window. A read without a
//! stream gets no read-ahead.
//!
//! *Source:* Wu, Xi, Li and Zou 2007, "Linux readahead: less tricks for more"; Linux 5 `mm/readahead.c` (the behaviour).

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fetch {
    pub(super) first: u64,
    pub(super) pages: u64,
    pub(super) mark: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reader {
    /// The last window: its start, its length, and how much of it was ahead of the reader.
    start: u64,
    size: u64,
    ahead: u64,
    last: Option<u64>,
}

/// What read-ahead needs to know about the pages in memory around a page.
pub(super) trait Memory {
    /// Pages in memory without a gap just before `index`, `most` at most.
    fn before(&self, index: u64, most: u64) -> u64;
    /// The first page from `index` on that is not in memory, `most` further at most.
    fn gap(&self, index: u64, most: u64) -> Option<u64>;
}

fn first_size(request: u64, most: u64) -> u64 {
    let size = request.next_power_of_two();
    if size <= most / 32 {
        size * 4
    } else if size <= most / 4 {
        size * 2
    } else {
        most
    }
}

fn next_size(size: u64, most: u64) -> u64 {
    if size < most / 16 {
        size * 4
    } else if size <= most / 2 {
        size * 2
    } else {
        most
    }
}

impl Reader {
    pub(super) fn has_read(&mut self, page: u64) {
        self.last = Some(page);
    }

    /// The pages to read at `index`, of which `request` are requested: because the page is missing, or `marked`.
    pub(super) fn fetch(
        &mut self,
        index: u64,
        request: u64,
        marked: bool,
        most: u64,
        memory: &impl Memory,
    ) -> Option<Fetch> {
        let follows = index == self.start + self.size - self.ahead || index == self.start + self.size;
        if index == 0 {
            self.begin(index, request, most);
        } else if follows && self.size > 0 {
            self.start += self.size;
            self.size = next_size(self.size, most);
            self.ahead = self.size;
        } else if marked {
            // Another reader's mark, or one from before a jump: continue at the end of the cached pages.
            let gap = memory.gap(index + 1, most)?;
            self.start = gap;
            self.size = next_size(gap - index + request, most);
            self.ahead = self.size;
        } else if request > most || self.last.is_some_and(|last| index == last || index == last + 1) {
            self.begin(index, request, most);
        } else {
            let before = memory.before(index, most);
            if before <= request {
                return Some(Fetch { first: index, pages: request, mark: None });
            }
            // Pages of a stream that was not detected as one, and a long one if it reaches back to the start.
            let before = if before >= index { before * 2 } else { before };
            (self.start, self.size, self.ahead) = (index, (before + request).min(most), 1);
        }
        Some(self.window(index, most))
    }

    fn begin(&mut self, index: u64, request: u64, most: u64) {
        self.start = index;
        self.size = first_size(request, most);
        self.ahead = if self.size > request { self.size - request } else { self.size };
    }

    /// The present window, joined with the next one if the reader would reach the mark at once.
    fn window(&mut self, index: u64, most: u64) -> Fetch {
        if index == self.start && self.size == self.ahead {
            let next = next_size(self.size, most);
            if self.size + next <= most {
                self.ahead = next;
                self.size += next;
            } else {
                self.size = most;
                self.ahead = most / 2;
            }
        }
        let mark = (self.ahead > 0).then(|| self.start + self.size - self.ahead);
        Fetch { first: self.start, pages: self.size, mark }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Empty;

    impl Memory for Empty {
        fn before(&self, _index: u64, _most: u64) -> u64 {
            0
        }

        fn gap(&self, index: u64, _most: u64) -> Option<u64> {
            Some(index)
        }
    }

    #[test]
    fn read_ahead_window_doubles_up_to_its_maximum() {
        // 4 KiB reads from the start with 128 KiB at most: 4 pages, then 8, 16, 32, and 32 from then on.
        let mut reader = Reader::default();
        let first = reader.fetch(0, 1, false, 32, &Empty).expect("it is missing");
        assert_eq!(first, Fetch { first: 0, pages: 4, mark: Some(1) });
        let mut mark = 1;
        let mut windows = Vec::new();
        for _ in 0..5 {
            let fetch = reader.fetch(mark, 1, true, 32, &Empty).expect("the mark was met");
            windows.push((fetch.first, fetch.pages));
            assert_eq!(fetch.mark, Some(fetch.first), "it is asked for as soon as the last one is used up");
            mark = fetch.first;
        }
        assert_eq!(windows, [(4, 8), (12, 16), (28, 32), (60, 32), (92, 32)]);
    }

    #[test]
    fn nonsequential_read_fetches_only_its_own_pages() {
        let mut reader = Reader::default();
        let fetch = reader.fetch(1000, 2, false, 32, &Empty);
        assert_eq!(fetch, Some(Fetch { first: 1000, pages: 2, mark: None }));
        reader.has_read(1001);
        let fetch = reader.fetch(5000, 2, false, 32, &Empty);
        assert_eq!(fetch, Some(Fetch { first: 5000, pages: 2, mark: None }));
        reader.has_read(5001);
        let fetch = reader.fetch(5002, 2, false, 32, &Empty).expect("it follows");
        assert_eq!((fetch.first, fetch.pages), (5002, 4));
    }

    #[test]
    fn request_as_long_as_the_window_is_fetched_whole() {
        let fetch = Reader::default().fetch(7, 64, false, 64, &Empty).expect("it is missing");
        assert_eq!((fetch.first, fetch.pages), (7, 64));
    }
}
