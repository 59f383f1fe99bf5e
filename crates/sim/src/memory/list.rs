//! An order of frames in which each can be moved at the same small cost.

/// No frame.
pub(crate) const NONE: u32 = u32::MAX;

/// Frames in an order, by number: a doubly linked list.
#[derive(Debug)]
pub(crate) struct List {
    links: Vec<(u32, u32)>,
    front: u32,
    back: u32,
}

impl List {
    pub(crate) fn new() -> List {
        List { links: Vec::new(), front: NONE, back: NONE }
    }

    pub(crate) fn front(&self) -> Option<u32> {
        (self.front != NONE).then_some(self.front)
    }

    pub(crate) fn after(&self, frame: u32) -> Option<u32> {
        let next = self.links[frame as usize].1;
        (next != NONE).then_some(next)
    }

    /// Appends a frame that is not in the list.
    pub(crate) fn push_back(&mut self, frame: u32) {
        if frame as usize >= self.links.len() {
            self.links.resize(frame as usize + 1, (NONE, NONE));
        }
        self.links[frame as usize] = (self.back, NONE);
        match self.back {
            NONE => self.front = frame,
            back => self.links[back as usize].1 = frame,
        }
        self.back = frame;
    }

    /// Removes a frame from the list.
    pub(crate) fn remove(&mut self, frame: u32) {
        let (before, after) = self.links[frame as usize];
        match before {
            NONE => self.front = after,
            before => self.links[before as usize].1 = after,
        }
        match after {
            NONE => self.back = before,
            after => self.links[after as usize].0 = before,
        }
    }

    pub(crate) fn move_to_back(&mut self, frame: u32) {
        if self.back != frame {
            self.remove(frame);
            self.push_back(frame);
        }
    }
}
