//! What a drive has taken and not put on its media: the data that a power cut loses.

use std::collections::BTreeMap;

/// Runs of bytes that lie apart from each other, each the youngest of its place.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    /// By first byte.
    runs: BTreeMap<u64, Vec<u8>>,
    bytes: u64,
}

impl Unwritten {
    /// How many bytes there are.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes data, in place of what it had there.
    pub(super) fn insert(&mut self, offset: u64, data: Vec<u8>) {
        self.remove(offset, offset + data.len() as u64, |_, _| {});
        if !data.is_empty() {
            self.bytes += data.len() as u64;
            self.runs.insert(offset, data);
        }
    }

    /// Drops what it has in `start..end`; `each` sees it before, piece by piece.
    pub(super) fn remove(&mut self, start: u64, end: u64, mut each: impl FnMut(u64, &[u8])) {
        while let Some((&first, _)) = self.runs.range(..end).next_back() {
            let last = first + self.runs[&first].len() as u64;
            if last <= start {
                return;
            }
            let mut run = self.runs.remove(&first).expect("it was just there");
            if last > end {
                self.runs.insert(end, run.split_off((end - first) as usize));
            }
            let from = start.max(first);
            let piece = &run[(from - first) as usize..];
            each(from, piece);
            self.bytes -= piece.len() as u64;
            if from > first {
                run.truncate((from - first) as usize);
                self.runs.insert(first, run);
            }
        }
    }

    /// Lays what it has over bytes that were read from `offset` on.
    pub(super) fn overlay(&self, offset: u64, read: &mut [u8]) {
        let end = offset + read.len() as u64;
        for (&first, run) in self.runs.range(..end).rev() {
            let last = first + run.len() as u64;
            if last <= offset {
                return;
            }
            let (from, to) = (first.max(offset), last.min(end));
            let source = &run[(from - first) as usize..(to - first) as usize];
            read[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
        }
    }

    /// The runs that touch `start..end`, cut to it, in order.
    pub(super) fn within(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let touching = self.runs.range(..end).rev().map(|(first, run)| (*first, first + run.len() as u64));
        let mut found: Vec<_> = touching
            .take_while(|(_, last)| *last > start)
            .map(|(first, last)| (first.max(start), last.min(end)))
            .collect();
        found.reverse();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_it_a_plain_array_in_disguise(steps in prop::collection::vec((0u64..60, 0usize..12, any::<bool>()), 1..60)) {
            let (mut unwritten, mut plain) = (Unwritten::default(), vec![None; 80]);
            for (number, (offset, length, inserts)) in steps.into_iter().enumerate() {
                let range = offset as usize..offset as usize + length;
                if inserts {
                    unwritten.insert(offset, vec![number as u8; length]);
                    plain[range].fill(Some(number as u8));
                } else {
                    let mut seen = [None; 80];
                    let end = offset + length as u64;
                    unwritten.remove(offset, end, |at, piece| {
                        for (place, byte) in piece.iter().enumerate() {
                            seen[at as usize + place] = Some(*byte);
                        }
                    });
                    prop_assert_eq!(&seen[range.clone()], &plain[range.clone()]);
                    plain[range].fill(None);
                }
                let mut read = vec![255; 80];
                unwritten.overlay(0, &mut read);
                let expected: Vec<u8> = plain.iter().map(|byte| byte.unwrap_or(255)).collect();
                prop_assert_eq!(read, expected);
                prop_assert_eq!(unwritten.bytes(), plain.iter().flatten().count() as u64);
                let held: u64 = unwritten.within(5, 50).iter().map(|(from, to)| to - from).sum();
                prop_assert_eq!(held, plain[5..50].iter().flatten().count() as u64);
            }
        }
    }
}
