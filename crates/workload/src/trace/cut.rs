//! Selects a part of a trace: by time, by the devices' bytes, or at random.

use headstack_model::{Instant, Nanos};
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use thiserror::Error;

use super::Record;
use crate::shape::generator;

/// The part of a trace to keep. All conditions must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct CutOptions {
    /// Issued at this time or later, counted from the first request.
    pub from: Option<Nanos>,
    /// Issued before this time, counted from the first request.
    pub to: Option<Nanos>,
    /// Not ending before this byte.
    pub first_byte: Option<u64>,
    /// Beginning before this byte.
    pub end_byte: Option<u64>,
    /// To the device of this name.
    pub device: Option<String>,
    /// Each request with this probability.
    pub share: f64,
    /// The seed of random choices.
    pub seed: u64,
}

impl Default for CutOptions {
    fn default() -> CutOptions {
        let (from, to, first_byte, end_byte, device) = (None, None, None, None, None);
        CutOptions { from, to, first_byte, end_byte, device, share: 1.0, seed: 0 }
    }
}

/// Why a cut cannot be made.
#[derive(Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CutError {
    #[error("the share is {0}, where more than 0 and up to 1 is allowed")]
    Share(f64),
    #[error("{what} runs from {from} to {to}, which is nothing")]
    Empty { what: &'static str, from: String, to: String },
}

/// Chooses the requests of a part.
#[derive(Debug)]
pub struct Cut {
    options: CutOptions,
    random: Pcg64Mcg,
    base: Option<Instant>,
}

impl Cut {
    /// A cut that starts at the trace's first request.
    ///
    /// *Errors:* a share out of range, or an empty range.
    pub fn new(options: CutOptions) -> Result<Cut, CutError> {
        if !(options.share > 0.0 && options.share <= 1.0) {
            return Err(CutError::Share(options.share));
        }
        if let (Some(from), Some(to)) = (options.from, options.to)
            && from >= to
        {
            let (from, to) = (format!("{} s", from.as_secs()), format!("{} s", to.as_secs()));
            return Err(CutError::Empty { what: "the time", from, to });
        }
        if let (Some(first), Some(end)) = (options.first_byte, options.end_byte)
            && first >= end
        {
            let (from, to) = (format!("byte {first}"), format!("byte {end}"));
            return Err(CutError::Empty { what: "the range of bytes", from, to });
        }
        let random = generator(options.seed);
        Ok(Cut { options, random, base: None })
    }

    /// Whether to keep this record, the next of the trace; `label` returns the trace's name of its device.
    pub fn keeps(&mut self, record: &Record, label: impl FnOnce() -> String) -> bool {
        let time = record.time.since(*self.base.get_or_insert(record.time));
        let options = &self.options;
        let inside = options.from.is_none_or(|from| time >= from)
            && options.to.is_none_or(|to| time < to)
            && options.first_byte.is_none_or(|first| record.end() > first)
            && options.end_byte.is_none_or(|end| record.offset < end)
            && options.device.as_ref().is_none_or(|device| *device == label());
        // 53 random bits are as fine as a probability can be.
        inside
            && (options.share == 1.0
                || ((self.random.next_u64() >> 11) as f64) < options.share * (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn kept(options: CutOptions) -> Vec<u64> {
        let mut cut = Cut::new(options).expect("the cut can be made");
        let record = |number: u64| {
            Record::new(Instant(500 + number * 10), (number % 2) as u32, Kind::Read, number * 512, 512)
        };
        (0..1000)
            .filter(|number| {
                let record = record(*number);
                cut.keeps(&record, || record.device.to_string())
            })
            .collect()
    }

    #[test]
    fn cut_times_count_from_first_request() {
        let options = CutOptions { from: Some(Nanos(20)), to: Some(Nanos(50)), ..CutOptions::default() };
        assert_eq!(kept(options), [2, 3, 4]);
    }

    #[test]
    fn cut_keeps_requests_that_touch_byte_range() {
        let options = CutOptions { first_byte: Some(1000), end_byte: Some(2048), ..CutOptions::default() };
        assert_eq!(kept(options), [1, 2, 3]);
        let device =
            CutOptions { device: Some("1".to_string()), end_byte: Some(2048), ..CutOptions::default() };
        assert_eq!(kept(device), [1, 3]);
    }

    #[test]
    fn sampled_share_is_close_and_repeatable() {
        let options = CutOptions { share: 0.3, seed: 5, ..CutOptions::default() };
        let some = kept(options.clone());
        assert!((250..350).contains(&some.len()), "{}", some.len());
        assert_eq!(some, kept(options));
    }

    #[test]
    fn empty_cut_is_rejected() {
        let said = |options| Cut::new(options).expect_err("it is refused").to_string();
        assert_eq!(
            said(CutOptions { share: 1.5, ..CutOptions::default() }),
            "the share is 1.5, where more than 0 and up to 1 is allowed"
        );
        let times = CutOptions { from: Some(Nanos(7)), to: Some(Nanos(7)), ..CutOptions::default() };
        assert!(said(times).starts_with("the time runs from"));
        let bytes = CutOptions { first_byte: Some(7), end_byte: Some(7), ..CutOptions::default() };
        assert_eq!(said(bytes), "the range of bytes runs from byte 7 to byte 7, which is nothing");
    }
}
