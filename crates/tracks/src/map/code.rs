//! Numbers as bytes: seven bits a byte, the lowest first, and a bit for "more follow" (LEB128). A sign is the lowest bit.

use super::MapError;

#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(super) fn signed(&mut self, value: i64) {
        self.number(((value << 1) ^ (value >> 63)) as u64);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Reader<'a> {
        Reader { bytes, at }
    }

    pub(super) fn position(&self) -> u64 {
        self.at as u64
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(super) fn number(&mut self, what: &'static str, least: u64, most: u64) -> Result<u64, MapError> {
        let begin = self.position();
        let value = self.any(what)?;
        if value < least || value > most {
            return Err(wrong(begin, what, value, format!("{least} to {most}")));
        }
        Ok(value)
    }

    pub(super) fn signed(&mut self, what: &'static str) -> Result<i64, MapError> {
        let value = self.any(what)?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn text(&mut self, what: &'static str, most: u64) -> Result<&'a str, MapError> {
        let begin = self.position();
        let length = self.number(what, 0, most)? as usize;
        let bytes = self.bytes.get(self.at..self.at + length);
        let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        self.at += length;
        text.ok_or_else(|| wrong(begin, what, "no text", "text in UTF-8 within the file"))
    }

    fn any(&mut self, what: &'static str) -> Result<u64, MapError> {
        let begin = self.position();
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let Some(byte) = self.bytes.get(self.at) else { break };
            self.at += 1;
            let bits = u64::from(byte & 0x7F);
            if (bits << shift) >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(wrong(begin, what, "no number", "a number below 2^64 within the file"))
    }
}

/// The error for an invalid value.
pub(super) fn wrong(at: u64, what: &'static str, found: impl ToString, allowed: impl ToString) -> MapError {
    MapError::Value { at, what, found: found.to_string(), allowed: allowed.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_text_read_back_unchanged() {
        let unsigned = [0, 1, 127, 128, 300, 1 << 32, u64::MAX];
        let signed = [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN];
        let mut writer = Writer::default();
        unsigned.iter().for_each(|value| writer.number(*value));
        signed.iter().for_each(|value| writer.signed(*value));
        writer.text("Atlas");
        let mut reader = Reader::new(&writer.bytes, 0);
        for value in unsigned {
            assert_eq!(reader.number("it", 0, u64::MAX).expect("it was written"), value);
        }
        for value in signed {
            assert_eq!(reader.signed("it").expect("it was written"), value);
        }
        assert_eq!(reader.text("it", 9).expect("it was written"), "Atlas");
        assert!(reader.is_at_end());
        assert!(reader.number("it", 0, 9).is_err());
    }

    #[test]
    fn number_beyond_64_bits_is_rejected() {
        let long = [0xFF; 11];
        assert!(Reader::new(&long, 0).number("it", 0, u64::MAX).is_err());
        let most = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02];
        assert!(Reader::new(&most, 0).number("it", 0, u64::MAX).is_err());
    }
}
