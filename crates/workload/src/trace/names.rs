//! Named devices: their names in order of first appearance.

use std::collections::BTreeMap;

use super::Header;
use super::error::{Fault, MOST_NAMES};

#[derive(Debug, Default)]
pub(super) struct Names {
    header: Header,
    places: BTreeMap<Vec<u8>, u32>,
    last: u32,
    text: Vec<u8>,
}

impl Names {
    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// The index of the name that `write` writes; a new name gets the next index.
    pub(super) fn intern(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<u32, Fault> {
        self.text.clear();
        write(&mut self.text);
        // Most requests go where the one before went.
        let same = self.header.names.get(self.last as usize).is_some_and(|name| name.as_bytes() == self.text);
        if same {
            return Ok(self.last);
        }
        self.last = match self.places.get(&self.text) {
            Some(place) => *place,
            None => self.add()?,
        };
        Ok(self.last)
    }

    fn add(&mut self) -> Result<u32, Fault> {
        let place = self.header.names.len();
        if place == MOST_NAMES {
            return Err(Fault::TooManyDevices);
        }
        self.header.names.push(String::from_utf8_lossy(&self.text).into_owned());
        self.places.insert(self.text.clone(), place as u32);
        Ok(place as u32)
    }
}

/// A device's name, if it has one that fits on a line and is not a number.
pub(super) fn plain_name(header: &Header, device: u32) -> Option<&str> {
    let name = header.names.get(device as usize)?;
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b',' && byte != b'"';
    let number = name.bytes().all(|byte| byte.is_ascii_digit());
    (!number && name.len() <= 200 && name.bytes().all(plain)).then_some(name.as_str())
}
