//! Replies that a client has not received yet.
//!
//! They are kept in pieces: small replies share one, a large one has memory of its own, of exactly its size. So no byte is held twice while
//! the queue grows, and the memory of a reply is free as soon as it was sent. [`Outbox::room`] counts the memory, not the bytes in it.

use std::collections::VecDeque;
use zerocopy::FromZeros;

/// Bytes of a piece for small replies.
pub(super) const PIECE: usize = 64 << 10;

/// Longest reply in bytes that shares a piece.
const SMALL: usize = 16 << 10;

/// Bytes of a piece for small replies behind a large one, where a whole one would be a waste.
const GAP: usize = 4 << 10;

/// Bytes of free memory that are kept for the next replies, because to allocate it again is expensive.
const KEPT: usize = 1 << 20;

/// Bytes of a reply's header, and some more.
const HEADER: usize = 64;

/// The system has no memory left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoMemory;

/// Memory of `bytes` zeros.
///
/// *Errors:* the system refuses it.
pub(super) fn zeros(bytes: usize) -> Result<Vec<u8>, NoMemory> {
    u8::new_vec_zeroed(bytes).map_err(|_| NoMemory)
}

/// Memory in bytes that a reply with this many bytes of data takes at most, with its share of what pieces leave unused.
pub(super) fn weight(bytes: usize) -> usize {
    bytes + HEADER + if bytes <= SMALL { bytes / 3 } else { GAP }
}

#[derive(Debug)]
struct ReplyPiece {
    room: Vec<u8>,
    /// Bytes in use, from the first on.
    filled: usize,
}

/// A queue of replies.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pieces: VecDeque<ReplyPiece>,
    /// Bytes of the first piece that were sent.
    sent: usize,
    len: usize,
    /// Free memory for the next pieces.
    spare: Vec<Vec<u8>>,
    /// Bytes of memory of all pieces and of the free ones.
    room: usize,
}

impl Outbox {
    /// Bytes that were not sent yet.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory that it has.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// The first bytes to send, none only if it is empty.
    pub(super) fn bytes(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| &piece.room[self.sent..piece.filled])
    }

    /// Removes the first `bytes` of [`bytes`](Outbox::bytes), and of the pieces behind them.
    pub(super) fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.len, "only what is there can be taken");
        self.len -= bytes;
        self.sent += bytes;
        while self.pieces.front().is_some_and(|piece| piece.filled <= self.sent) {
            let piece = self.pieces.pop_front().expect("it is there");
            self.sent -= piece.filled;
            self.keep(piece.room);
        }
    }

    /// Keeps memory for the next replies; frees what was kept longest, and a piece that is too large to keep at once.
    fn keep(&mut self, room: Vec<u8>) {
        if room.len() > KEPT + HEADER {
            self.room -= room.len();
            return;
        }
        self.spare.push(room);
        let mut kept: usize = self.spare.iter().map(Vec::len).sum();
        while kept > KEPT + HEADER {
            let freed = self.spare.remove(0).len();
            kept -= freed;
            self.room -= freed;
        }
    }

    /// Frees the memory that no reply uses.
    pub(super) fn release(&mut self) {
        self.room -= self.spare.drain(..).map(|room| room.len()).sum::<usize>();
        self.spare.shrink_to_fit();
    }

    /// Drops all replies.
    pub(super) fn clear(&mut self) {
        *self = Outbox::default();
    }

    /// Space for exactly this many bytes behind the others; [`commit`](Outbox::commit) appends what was written there.
    ///
    /// *Errors:* the system has no memory for them.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<&mut [u8], NoMemory> {
        let is_small = bytes <= SMALL + HEADER;
        // Not in what a large reply leaves of its piece, which would stay for as long as the small one waits.
        let has_room =
            |piece: &ReplyPiece| piece.room.len() <= PIECE && bytes <= piece.room.len() - piece.filled;
        let fits = self.pieces.back().is_some_and(has_room);
        if !(is_small && fits) {
            let is_behind_large = self.pieces.back().is_some_and(|piece| piece.room.len() != PIECE);
            let wanted = match is_small {
                false => bytes,
                true if is_behind_large => bytes.max(GAP),
                true => PIECE,
            };
            let room = self.allocate(wanted)?;
            self.pieces.push_back(ReplyPiece { room, filled: 0 });
        }
        let piece = self.pieces.back_mut().expect("it has space");
        Ok(&mut piece.room[piece.filled..piece.filled + bytes])
    }

    /// Free memory of at least this size, and of little more.
    fn allocate(&mut self, bytes: usize) -> Result<Vec<u8>, NoMemory> {
        let suits = |room: &Vec<u8>| {
            room.len() == bytes || bytes > SMALL && (bytes..=bytes + GAP).contains(&room.len())
        };
        if let Some(at) = self.spare.iter().position(suits) {
            return Ok(self.spare.remove(at));
        }
        let room = zeros(bytes)?;
        self.room += room.len();
        Ok(room)
    }

    /// Appends the first `bytes` of the space that was reserved.
    pub(super) fn commit(&mut self, bytes: usize) {
        let piece = self.pieces.back_mut().expect("it was reserved");
        assert!(bytes <= piece.room.len() - piece.filled, "no more can be put in than there is room");
        piece.filled += bytes;
        self.len += bytes;
    }

    /// Drops space that was reserved and not used.
    pub(super) fn cancel(&mut self) {
        if self.pieces.back().is_some_and(|piece| piece.filled == 0) {
            let piece = self.pieces.pop_back().expect("it is there");
            self.keep(piece.room);
        }
    }

    /// Appends bytes.
    ///
    /// *Errors:* the system has no memory for them.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), NoMemory> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.reserve(bytes.len())?.copy_from_slice(bytes);
        self.commit(bytes.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Bytes leave in their order, and the memory is that of the pieces, within the weights of the replies.
        #[test]
        fn bytes_leave_in_order_and_their_memory_is_within_their_weights(
            steps in prop::collection::vec((prop_oneof![0..200usize, 0..40_000usize, 0..300_000usize], any::<u16>()), 1..60),
        ) {
            let mut outbox = Outbox::default();
            let (mut said, mut heard) = (0_u8, 0_u8);
            let mut replies: VecDeque<usize> = VecDeque::new();
            for (bytes, sent) in steps {
                let data: Vec<u8> = (0..bytes).map(|at| said.wrapping_add(at as u8)).collect();
                said = said.wrapping_add(bytes as u8);
                outbox.push(&data).expect("there is memory");
                replies.push_back(bytes);
                let mut left = outbox.len() * usize::from(sent) / 65_536;
                while left > 0 {
                    let part = outbox.bytes().len().min(left);
                    prop_assert!(part > 0);
                    for byte in &outbox.bytes()[..part] {
                        prop_assert_eq!(*byte, heard);
                        heard = heard.wrapping_add(1);
                    }
                    outbox.consume(part);
                    left -= part;
                }
                let mut unsent: usize = replies.iter().sum();
                while replies.front().is_some_and(|first| unsent - first >= outbox.len()) {
                    unsent -= replies.pop_front().expect("it is there");
                }
                let pieces: usize = outbox.pieces.iter().map(|piece| piece.room.len()).sum();
                prop_assert_eq!(outbox.room(), pieces + outbox.spare.iter().map(Vec::len).sum::<usize>());
                let weights: usize = replies.iter().map(|bytes| weight(*bytes)).sum();
                prop_assert!(pieces <= weights + 2 * PIECE, "{pieces} for {weights}");
            }
            outbox.consume(outbox.len());
            outbox.release();
            prop_assert!(outbox.is_empty() && outbox.bytes().is_empty());
            prop_assert!(outbox.room() <= PIECE, "{}", outbox.room());
        }
    }

    #[test]
    fn memory_of_a_large_reply_is_its_size_and_free_once_it_was_sent() {
        let mut outbox = Outbox::default();
        outbox.push(&[1; 16]).expect("there is memory");
        outbox.reserve(32 << 20).expect("there is memory");
        outbox.commit(32 << 20);
        assert_eq!(outbox.room(), PIECE + (32 << 20));
        outbox.consume(16);
        outbox.consume(32 << 20);
        assert_eq!((outbox.room(), outbox.is_empty()), (PIECE, true));
        outbox.release();
        assert_eq!(outbox.room(), 0);
    }

    #[test]
    fn reply_without_memory_is_refused_and_the_others_stay() {
        let mut outbox = Outbox::default();
        outbox.push(&[7; 16]).expect("there is memory");
        assert_eq!(outbox.reserve(isize::MAX as usize).err(), Some(NoMemory));
        assert_eq!(outbox.bytes(), [7; 16]);
    }
}
