//! Values of keys: numbers with fio's suffixes, times, percentages, ranges, one value a direction.
//!
//! With `kb_base=1024`, fio's default, `k` and `kb` are 1024 and `kib` is 1000; with `kb_base=1000` it is the reverse.
//! fio ignores an unknown suffix; here it is an error.
//!
//! *Source:* fio's HOWTO, "Parameter types", and fio 3.33 where the two differ (`ki` is `k`).

use headstack_model::Nanos;

use super::error::{nearest, show};

pub(super) const LONGEST_REQUEST: u64 = 1 << 30;

/// Longest accepted time: a thousand days.
const LONGEST_S: u64 = 1000 * 86_400;
/// Numbers reach up to here, so that sums of a few of them cannot overflow.
const MOST: u64 = 1 << 60;

/// An amount of bytes, or a share of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    Bytes(u64),
    Percent(u64),
    /// Zones of the disk or of `zonesize`, until the volumes are known.
    Zones(u64),
}

impl Default for Amount {
    fn default() -> Amount {
        Amount::Bytes(0)
    }
}

impl Amount {
    /// Its bytes, where all are `whole`.
    pub(super) fn bytes(self, whole: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Percent(share) => (u128::from(whole) * u128::from(share) / 100) as u64,
            Amount::Zones(_) => 0,
        }
    }

    /// Its bytes, unless it is a share; then 0.
    pub(super) fn fixed(self) -> u64 {
        self.bytes(0)
    }
}

/// The value of a key as written: `None` if the key has none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'a> {
    text: Option<&'a str>,
    kb_base: u64,
}

pub(super) type Parsed<T> = Result<T, String>;

impl<'a> Given<'a> {
    pub(super) fn new(text: Option<&'a str>, kb_base: u64) -> Given<'a> {
        Given { text, kb_base }
    }

    /// The text of a value, which must be present.
    pub(super) fn text(&self) -> Parsed<&'a str> {
        match self.text.map(str::trim) {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err("needs a value".to_string()),
        }
    }

    pub(super) fn owned(&self) -> Parsed<String> {
        self.text().map(str::to_string)
    }

    fn with(&self, text: &'a str) -> Given<'a> {
        Given { text: Some(text), ..*self }
    }

    /// Yes or no: `1`, `0`.
    pub(super) fn flag(&self) -> Parsed<bool> {
        match self.text()? {
            "1" => Ok(true),
            "0" => Ok(false),
            other => Err(wrong(other, "0 or 1")),
        }
    }

    /// Yes or no, where the key alone means yes.
    pub(super) fn switch(&self) -> Parsed<bool> {
        if self.text.is_none() { Ok(true) } else { self.flag() }
    }

    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Parsed<T> {
        let text = self.text()?;
        if self.text != Some(text) {
            return Err(format!("a blank before `{}`, where fio takes none", show(text)));
        }
        words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let list: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let hint = nearest(text, list.iter().copied());
            format!("{}{hint}", wrong(text, &list.join(", ")))
        })
    }

    /// A whole number from `least` to `most`, with a suffix as for bytes.
    pub(super) fn count(&self, least: u64, most: u64) -> Parsed<u64> {
        let text = self.text()?;
        match number(text, self.kb_base) {
            Some(Amount::Bytes(count)) if (least..=most).contains(&count) => Ok(count),
            _ => Err(wrong(text, &format!("a whole number from {least} to {most}"))),
        }
    }

    /// A number of bytes, at least 1.
    pub(super) fn bytes(&self) -> Parsed<u64> {
        let text = self.text()?;
        match number(text, self.kb_base) {
            Some(Amount::Bytes(bytes)) if bytes > 0 => Ok(bytes),
            _ => Err(wrong(text, "a number of bytes such as 512, 4k, 1m or 2g")),
        }
    }

    /// A number of bytes, or 0.
    pub(super) fn bytes_or_zero(&self) -> Parsed<u64> {
        if self.text()? == "0" { Ok(0) } else { self.bytes() }
    }

    pub(super) fn amount(&self) -> Parsed<Amount> {
        let text = self.text()?;
        match number(text, self.kb_base) {
            Some(Amount::Percent(share)) if share > 100 => Err(wrong(text, "0% to 100%")),
            Some(amount) => Ok(amount),
            None => Err(wrong(text, "a number of bytes such as 4k or 2g, or a percentage such as 20%")),
        }
    }

    /// As [`Given::amount`], or a number of zones.
    pub(super) fn amount_or_zones(&self) -> Parsed<Amount> {
        let zones = self.text()?.strip_suffix('z').and_then(|zones| zones.parse::<u32>().ok());
        zones.map_or_else(|| self.amount(), |zones| Ok(Amount::Zones(zones.into())))
    }

    /// A number of bytes, or of zones.
    pub(super) fn bytes_or_zones(&self) -> Parsed<Amount> {
        match self.amount_or_zones()? {
            Amount::Percent(_) => {
                Err(wrong(self.text()?, "a number of bytes such as 4k or 2g, or of zones such as 8z"))
            }
            amount => Ok(amount),
        }
    }

    /// A time; `unit` is the unit of a bare number.
    pub(super) fn time(&self, unit: Nanos) -> Parsed<Nanos> {
        let text = self.text()?;
        time(text, unit).ok_or_else(|| wrong(text, "a time such as 100us, 20ms, 5s, 10m, 2h or 1d"))
    }

    pub(super) fn request_bytes(&self) -> Parsed<u64> {
        self.bytes().and_then(|bytes| {
            let fits = bytes <= LONGEST_REQUEST;
            if fits { Ok(bytes) } else { Err(wrong(self.text()?, "a request of at most 1g")) }
        })
    }

    /// A whole percentage, with or without its sign.
    pub(super) fn percent(&self) -> Parsed<u64> {
        let text = self.text()?;
        let percent = text.strip_suffix('%').unwrap_or(text).parse().ok();
        percent.filter(|percent| *percent <= 100).ok_or_else(|| wrong(text, "a percentage from 0 to 100"))
    }

    /// The text before the first `:`, and the text after it.
    pub(super) fn head(&self) -> Parsed<(Given<'a>, Option<Given<'a>>)> {
        self.text()?;
        let text = self.text.unwrap_or_default();
        Ok(match text.split_once(':') {
            None => (*self, None),
            Some((head, rest)) => (self.with(head), Some(self.with(rest))),
        })
    }

    /// The value without its sign, and whether that was a minus.
    pub(super) fn signed(&self) -> Parsed<(Given<'a>, bool)> {
        let text = self.text()?;
        Ok(text.strip_prefix('-').map_or((*self, false), |rest| (self.with(rest), true)))
    }

    /// One or two numbers with a fraction; the second is a share of 1.
    pub(super) fn shape(&self) -> Parsed<(Option<f64>, Option<f64>)> {
        let (value, center) = self.head()?;
        let center = center.map(|center| {
            let share = center.real()?;
            let fits = (0.0..=1.0).contains(&share);
            if fits { Ok(share) } else { Err(wrong(center.text()?, "a centre from 0 to 1")) }
        });
        Ok((Some(value.real()?), center.transpose()?))
    }

    pub(super) fn real(&self) -> Parsed<f64> {
        let text = self.text()?;
        let real = text.parse::<f64>().ok().filter(|real| real.is_finite());
        real.ok_or_else(|| wrong(text, "a number such as 0.5"))
    }

    /// A number from 0 to 1.
    pub(super) fn share(&self) -> Parsed<f64> {
        let share = self.real()?;
        if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(wrong(self.text()?, "a share from 0 to 1")) }
    }

    pub(super) fn parts(&self, separator: char) -> Parsed<Vec<Given<'a>>> {
        Ok(self.text()?.split(separator).map(|part| self.with(part.trim())).collect())
    }

    /// One or two values, separated by `-` or `:`, the smaller first.
    pub(super) fn range<T: Ord + Copy>(&self, parse: impl Fn(&Given<'a>) -> Parsed<T>) -> Parsed<(T, T)> {
        let text = self.text()?;
        match text.split_once(['-', ':']) {
            None => parse(self).map(|value| (value, value)),
            Some((low, high)) => {
                let (low, high) = (parse(&self.with(low.trim()))?, parse(&self.with(high.trim()))?);
                Ok((low.min(high), low.max(high)))
            }
        }
    }

    /// The pairs of a list `first/second:first/second` with at most `most` of them; the second of a pair may be left out.
    #[allow(clippy::type_complexity, reason = "the pairs are what the name says")]
    pub(super) fn pairs<A, B>(
        &self,
        most: usize,
        first: fn(&Given<'a>) -> Parsed<A>,
        second: fn(&Given<'a>) -> Parsed<B>,
    ) -> Parsed<Vec<(A, Option<B>)>> {
        let parts = self.parts(':')?;
        if parts.len() > most {
            return Err(format!("{} parts, where at most {most} are allowed", parts.len()));
        }
        let read = |part: &Given<'a>| {
            let pair = part.parts('/')?;
            let tail = pair.get(1).filter(|tail| tail.text().is_ok());
            Ok((first(&pair[0])?, tail.map(second).transpose()?))
        };
        parts.iter().map(read).collect()
    }

    /// Percentages that sum to 100 %, with those that were left out filled in evenly.
    pub(super) fn fill_percents(
        &self,
        percents: impl Iterator<Item = Option<u64>> + Clone,
    ) -> Parsed<Vec<u64>> {
        let sum: u64 = percents.clone().flatten().sum();
        let missing = percents.clone().filter(Option::is_none).count() as u64;
        let Some(left) = 100u64.checked_sub(sum) else {
            return Err(wrong(self.text()?, "at most 100 % in all"));
        };
        if missing == 0 && left > 0 {
            return Err(wrong(self.text()?, "100 % in all"));
        }
        Ok(percents.map(|percent| percent.unwrap_or(left / missing.max(1))).collect())
    }

    pub(super) fn store<T: From<U>, U>(
        &self,
        into: &mut T,
        parse: impl Fn(&Given<'a>) -> Parsed<U>,
    ) -> Parsed<()> {
        *into = parse(self)?.into();
        Ok(())
    }

    pub(super) fn raise(&self, into: &mut bool, parse: impl Fn(&Given<'a>) -> Parsed<bool>) -> Parsed<()> {
        *into |= parse(self)?;
        Ok(())
    }

    /// Up to three values, for reads, writes and trims. The last given one applies to those that follow; an empty one leaves the
    /// previous value.
    pub(super) fn by_direction<T: Clone + From<U>, U>(
        &self,
        into: &mut [T; 3],
        parse: impl Fn(&Given<'a>) -> Parsed<U>,
    ) -> Parsed<()> {
        let text = self.text()?;
        let mut last: Option<T> = None;
        let mut given = 0;
        for part in text.split(',') {
            let Some(place) = into.get_mut(given) else {
                return Err(wrong(text, "at most three values, for reads, writes and trims"));
            };
            last = if part.trim().is_empty() { None } else { Some(parse(&self.with(part.trim()))?.into()) };
            if let Some(value) = &last {
                *place = value.clone();
            }
            given += 1;
        }
        if let Some(value) = last {
            into[given..].fill(value);
        }
        Ok(())
    }
}

pub(super) fn wrong(met: &str, allowed: &str) -> String {
    format!("`{}`, where {allowed} is allowed", show(met))
}

fn number(text: &str, kb_base: u64) -> Option<Amount> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((text, 10), |digits| (digits, 16));
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let value = u64::from_str_radix(&digits[..end], radix).ok()?;
    let suffix = digits[end..].to_ascii_lowercase();
    if suffix == "%" {
        return Some(Amount::Percent(value));
    }
    let bytes = value.checked_mul(multiplier(&suffix, kb_base)?)?;
    (bytes <= MOST).then_some(Amount::Bytes(bytes))
}

fn multiplier(suffix: &str, kb_base: u64) -> Option<u64> {
    let power = match suffix.bytes().next() {
        None => return Some(1),
        Some(b'b') if suffix == "b" => return Some(1),
        Some(first) => b"kmgtp".iter().position(|letter| *letter == first)? + 1,
    };
    let base = match &suffix[1..] {
        "" | "b" | "i" => kb_base,
        "ib" if kb_base == 1000 => 1024,
        "ib" => 1000,
        _ => return None,
    };
    Some(base.pow(power as u32))
}

fn time(text: &str, unit: Nanos) -> Option<Nanos> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let value: u64 = text[..end].parse().ok()?;
    let unit = match text[end..].to_ascii_lowercase().as_str() {
        "" => unit,
        "us" | "usec" => Nanos(1_000),
        "ms" | "msec" => Nanos(1_000_000),
        "s" | "sec" => Nanos::from_secs(1),
        "m" => Nanos::from_secs(60),
        "h" => Nanos::from_secs(3600),
        "d" => Nanos::from_secs(86_400),
        _ => return None,
    };
    let span = Nanos(value.checked_mul(unit.0)?);
    (span <= Nanos::from_secs(LONGEST_S)).then_some(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Given<'_> {
        Given::new(Some(text), 1024)
    }

    #[test]
    fn size_suffixes_match_fio() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("4ki", 4096),
            ("4kib", 4000),
            ("1m", 1 << 20),
            ("2GiB", 2_000_000_000),
            ("1t", 1 << 40),
            ("0x1000", 4096),
            ("512b", 512),
        ] {
            assert_eq!(given(text).bytes(), Ok(bytes), "{text}");
        }
        assert_eq!(Given::new(Some("4k"), 1000).bytes(), Ok(4000));
        assert_eq!(Given::new(Some("4kib"), 1000).bytes(), Ok(4096));
    }

    #[test]
    fn malformed_numbers_are_rejected() {
        for text in ["", "k", "4q", "1.5g", "-4k", "99999999999p", "4kk", "18446744073709551616"] {
            assert!(given(text).bytes().is_err(), "{text}");
        }
        assert_eq!(
            given("4q").bytes(),
            Err("`4q`, where a number of bytes such as 512, 4k, 1m or 2g is allowed".to_string())
        );
        assert_eq!(given("20%").amount(), Ok(Amount::Percent(20)));
        assert!(given("120%").amount().is_err());
    }

    #[test]
    fn times_are_read_in_their_units() {
        let second = Nanos::from_secs(1);
        for (text, time) in
            [("5", 5_000_000_000), ("5s", 5_000_000_000), ("20ms", 20_000_000), ("7US", 7_000)]
        {
            assert_eq!(given(text).time(second), Ok(Nanos(time)), "{text}");
        }
        assert_eq!(given("3").time(Nanos(1_000)), Ok(Nanos(3_000)));
        assert!(given("5 weeks").time(second).is_err());
        assert!(given("9999999d").time(second).is_err());
    }

    #[test]
    fn value_applies_to_later_directions() {
        let read = |text: &str| {
            let mut into = [1u64, 2, 3];
            given(text).by_direction(&mut into, |given| given.bytes()).map(|()| into)
        };
        assert_eq!(read("4k"), Ok([4096, 4096, 4096]));
        assert_eq!(read("4k,8k"), Ok([4096, 8192, 8192]));
        assert_eq!(read("4k,8k,"), Ok([4096, 8192, 3]));
        assert_eq!(read(",8k"), Ok([1, 8192, 8192]));
        assert_eq!(read(",8k,"), Ok([1, 8192, 3]));
        assert!(read("1,2,3,4").is_err());
    }

    #[test]
    fn range_bounds_are_sorted() {
        assert_eq!(given("8k-4k").range(Given::bytes), Ok((4096, 8192)));
        assert_eq!(given("4k:8k").range(Given::bytes), Ok((4096, 8192)));
        assert_eq!(given("4k").range(Given::bytes), Ok((4096, 4096)));
    }
}
