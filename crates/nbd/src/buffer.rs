//! A byte queue that does not allocate in the steady state.

/// A queue of bytes in contiguous memory.
#[derive(Debug)]
pub(super) struct Buffer {
    /// Memory; what lies outside `begin..end` is undefined.
    room: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Buffer {
    pub(super) fn with_room(bytes: usize) -> Buffer {
        Buffer { room: vec![0; bytes], begin: 0, end: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.room[self.begin..self.end]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.room[self.begin..self.end]
    }

    pub(super) fn len(&self) -> usize {
        self.end - self.begin
    }

    pub(super) fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.len(), "only what is there can be taken");
        self.begin += bytes;
        if self.is_empty() {
            (self.begin, self.end) = (0, 0);
        }
    }

    /// Whether [`space`](Buffer::space) has any.
    pub(super) fn has_space(&self) -> bool {
        self.len() < self.room.len()
    }

    /// The free memory behind the bytes.
    pub(super) fn space(&mut self) -> &mut [u8] {
        if self.begin > 0 {
            self.room.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.len());
        }
        &mut self.room[self.end..]
    }

    /// Appends the first `bytes` of [`space`](Buffer::space).
    pub(super) fn commit(&mut self, bytes: usize) {
        assert!(bytes <= self.room.len() - self.end, "no more can be put in than there is room");
        self.end += bytes;
    }

    /// Space for exactly this many bytes behind the others; [`commit`](Buffer::commit) appends what was written there.
    pub(super) fn reserve(&mut self, bytes: usize) -> &mut [u8] {
        let needed = self.len() + bytes;
        if self.end + bytes > self.room.len() {
            // Moving is cheap if much was removed; otherwise the memory doubles, so that both are rare.
            if self.begin >= self.len() && needed <= self.room.len() {
                self.room.copy_within(self.begin..self.end, 0);
            } else {
                let mut room = vec![0; needed.next_power_of_two()];
                room[..self.len()].copy_from_slice(self.bytes());
                self.room = room;
            }
            (self.begin, self.end) = (0, self.len());
        }
        &mut self.room[self.end..self.end + bytes]
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len()).copy_from_slice(bytes);
        self.commit(bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_the_order_they_entered() {
        let mut buffer = Buffer::with_room(8);
        let (mut sent, mut received) = (0_u8, 0_u8);
        for step in 0..2000_usize {
            for _ in 0..step * 7 % 13 {
                buffer.push(&[sent]);
                sent = sent.wrapping_add(1);
            }
            let taken = (step * 5 % 14).min(buffer.len());
            for &byte in &buffer.bytes()[..taken] {
                assert_eq!(byte, received);
                received = received.wrapping_add(1);
            }
            buffer.consume(taken);
        }
        assert!(buffer.len() < 64 && buffer.room.len() <= 64, "{buffer:?}");
    }

    #[test]
    fn space_spans_all_room_that_remains() {
        let mut buffer = Buffer::with_room(8);
        buffer.space()[..8].copy_from_slice(b"abcdefgh");
        buffer.commit(8);
        assert!(!buffer.has_space());
        buffer.consume(5);
        assert!(buffer.has_space());
        assert_eq!(buffer.space().len(), 5);
        assert_eq!(buffer.bytes(), b"fgh");
    }
}
