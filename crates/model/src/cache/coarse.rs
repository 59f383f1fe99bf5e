//! A filter over the segments that may hold a block. Most reads hit none; coarse 16-bit numbers are the fastest way to find that.

use super::Span;

/// The spans of segments in units of about a segment, modulo 2¹⁶.
#[derive(Clone, Debug)]
pub(super) struct Coarse {
    shift: u32,
    first: Vec<u16>,
    /// Units from the first block to the block after the last; a length that does not fit counts as all.
    length: Vec<u16>,
}

impl Coarse {
    /// Segments of `sectors` each, with room for `most` of them.
    pub(super) fn new(sectors: u64, most: usize) -> Coarse {
        let shift = sectors.max(1).ilog2();
        Coarse { shift, first: Vec::with_capacity(most), length: Vec::with_capacity(most) }
    }

    pub(super) fn resize(&mut self, count: usize) {
        self.first.resize(count, 0);
        self.length.resize(count, 0);
    }

    #[inline]
    pub(super) fn set(&mut self, index: usize, (from, to): Span) {
        let first = from >> self.shift;
        self.first[index] = first as u16;
        self.length[index] = (to >> self.shift).saturating_sub(first).min(u64::from(u16::MAX)) as u16;
    }

    /// Whether any segment may hold a block or end before it; false only where none does.
    #[inline]
    pub(super) fn may_hold(&self, block: u64) -> bool {
        let unit = (block >> self.shift) as u16;
        let spans = self.first.iter().zip(&self.length);
        // Without branches, so that the compiler vectorises it.
        spans.fold(false, |any, (first, length)| any | (unit.wrapping_sub(*first) <= *length))
    }

    /// Whether any segment may share a block with `first..end`; false only where none does.
    #[inline]
    pub(super) fn may_share(&self, first: u64, end: u64) -> bool {
        let unit = (first >> self.shift) as u16;
        let more = ((end >> self.shift) - (first >> self.shift)).min(u64::from(u16::MAX)) as u16;
        let spans = self.first.iter().zip(&self.length);
        spans.fold(false, |any, (first, length)| {
            any | (unit.wrapping_sub(*first) <= *length) | (first.wrapping_sub(unit) <= more)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn segment_holding_the_block_is_never_ruled_out(
            sectors in 1u64..20_000,
            spans in prop::collection::vec((0u64..1 << 40, 0u64..1 << 30, any::<bool>()), 1..40),
            pick in any::<prop::sample::Index>(),
            into in any::<u64>(),
        ) {
            let mut coarse = Coarse::new(sectors, spans.len());
            coarse.resize(spans.len());
            let spans: Vec<Span> = spans
                .into_iter()
                .map(|(from, length, short)| (from, from + if short { length % (2 * sectors) } else { length }))
                .collect();
            spans.iter().enumerate().for_each(|(index, span)| coarse.set(index, *span));
            let (from, to) = spans[pick.index(spans.len())];
            let block = from + into % (to - from + 1);
            prop_assert!(coarse.may_hold(block));
            if block < to {
                let more = into % (2 * sectors);
                prop_assert!(coarse.may_share(block.saturating_sub(more), block + 1 + more));
            }
        }
    }

    #[test]
    fn segments_far_from_the_block_are_ruled_out() {
        let mut coarse = Coarse::new(8192, 64);
        coarse.resize(64);
        (0..64)
            .for_each(|index| coarse.set(index, (1_000_000 * index as u64, 1_000_000 * index as u64 + 8199)));
        let ruled_out = (0..64).filter(|index| !coarse.may_hold(1_000_000 * index + 500_000)).count();
        assert_eq!(ruled_out, 64);
        let far = |index: &u64| !coarse.may_share(1_000_000 * index + 500_000, 1_000_000 * index + 500_008);
        assert_eq!((0..64).filter(far).count(), 64);
    }
}
