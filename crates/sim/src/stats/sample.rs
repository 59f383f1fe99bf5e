//! An even sample of a sequence of unknown length: every item, every second, every fourth …

/// Keeps every `step`-th item, at most `most` of them.
#[derive(Clone, Debug)]
pub struct Sample<T> {
    kept: Vec<T>,
    most: usize,
    step: u64,
    skip: u64,
}

impl<T> Sample<T> {
    /// A sample of at most `most` items (rounded to an even number, at least 2).
    pub fn new(most: usize) -> Sample<T> {
        let most = most.max(2).next_multiple_of(2);
        Sample { kept: Vec::with_capacity(most), most, step: 1, skip: 0 }
    }

    /// Offers the next item, which is made only if it is kept.
    #[inline]
    pub fn offer(&mut self, make: impl FnOnce() -> T) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        self.skip = self.step - 1;
        if self.kept.len() == self.most {
            // As an even number is kept, the next thing is in the wider step too.
            self.thin();
        }
        self.kept.push(make());
    }

    fn thin(&mut self) {
        let mut index = 0;
        self.kept.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.step *= 2;
        self.skip = self.step - 1;
    }

    /// The sample, in order.
    pub fn kept(&self) -> &[T] {
        &self.kept
    }

    /// The present step: every `step`-th item is kept.
    pub fn step(&self) -> u64 {
        self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_sample_keeps_all_values() {
        let mut sample = Sample::new(8);
        (0..8).for_each(|value| sample.offer(|| value));
        assert_eq!((sample.kept(), sample.step()), (&[0, 1, 2, 3, 4, 5, 6, 7][..], 1));
    }

    #[test]
    fn full_sample_keeps_every_nth_value() {
        for shown in [9u64, 16, 17, 100, 1000, 12_345] {
            let mut sample = Sample::new(8);
            (0..shown).for_each(|value| sample.offer(|| value));
            let expected: Vec<u64> = (0..shown).step_by(sample.step() as usize).collect();
            assert_eq!(sample.kept(), expected, "of {shown}");
            assert!(sample.kept().len() <= 8 && sample.kept().len() > 3);
        }
    }
}
