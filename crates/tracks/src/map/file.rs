//! A map as a file: a header with format and disk, rules and exceptions, and a checksum.
//!
//! The checksum covers every byte; values are checked all the same, because a wrong file can have a valid checksum.
//! `docs/formats/track-map.md` describes the format.

use super::code::{Reader, Writer, wrong};
use super::grammar::{self, Exception, Rule, Shape};
use super::{ForeignMap, MapError, TrackMap};
use std::io::{self, Read, Write};

/// Like the signature of PNG: not ASCII, and changed by programs that convert line ends.
const MAGIC: [u8; 8] = *b"\x89HSTRK\r\n";
const VERSION: u32 = 1;
/// Bytes of magic, version and length.
const HEAD: usize = 20;
const CHECKSUM: usize = 4;
const MOST_BYTES: u64 = 1 << 28;
/// Maximum runs of a map, which take 256 MiB of memory.
const MOST_RUNS: u64 = 1 << 24;
/// Maximum bytes of a name or a serial number.
const MOST_TEXT: u64 = 1000;

/// The disk of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Identity {
    pub sectors: u64,
    pub sector_bytes: u32,
    /// Blocks in a physical sector.
    pub physical_sectors: u32,
    /// The model name that the disk reports, if it does.
    pub name: Option<String>,
    /// The serial number that it reports, if it does.
    pub serial: Option<String>,
}

impl Identity {
    /// A disk of this size without a name.
    pub fn new(sectors: u64, sector_bytes: u32) -> Identity {
        Identity { sectors, sector_bytes, physical_sectors: 1, name: None, serial: None }
    }

    /// Checks whether a map of this disk may be that of `disk`. Names and serial numbers count if both have one.
    ///
    /// *Errors:* the first difference.
    pub fn admits(&self, disk: &Identity) -> Result<(), ForeignMap> {
        let texts = [("serial number", &self.serial, &disk.serial), ("name", &self.name, &disk.name)];
        for (what, of_map, of_disk) in texts {
            if let (Some(of_map), Some(of_disk)) = (of_map, of_disk)
                && of_map != of_disk
            {
                let (of_map, of_disk) = (format!("{of_map:?}"), format!("{of_disk:?}"));
                return Err(ForeignMap { what, of_map, of_disk });
            }
        }
        let numbers = [
            ("number of blocks", self.sectors, disk.sectors),
            ("number of bytes in a block", u64::from(self.sector_bytes), u64::from(disk.sector_bytes)),
            (
                "number of blocks in a physical sector",
                u64::from(self.physical_sectors),
                u64::from(disk.physical_sectors),
            ),
        ];
        for (what, of_map, of_disk) in numbers {
            if of_map != of_disk {
                return Err(ForeignMap { what, of_map: of_map.to_string(), of_disk: of_disk.to_string() });
            }
        }
        Ok(())
    }
}

/// Writes a map of a disk, which must not exceed it.
///
/// *Errors:* writing fails; a name of more than 1,000 bytes.
pub fn write(out: &mut impl Write, identity: &Identity, map: &TrackMap) -> io::Result<()> {
    assert!(map.end().0 <= identity.sectors, "a map ends with its disk");
    let mut head = Writer::default();
    head.bytes.extend_from_slice(&MAGIC);
    head.bytes.extend_from_slice(&VERSION.to_le_bytes());
    head.bytes.extend_from_slice(&[0; 8]);
    head.number(identity.sectors);
    head.number(u64::from(identity.sector_bytes));
    head.number(u64::from(identity.physical_sectors));
    for text in [&identity.name, &identity.serial] {
        let text = text.as_deref().unwrap_or("");
        if text.len() as u64 > MOST_TEXT {
            let message = format!("a name of {} bytes; {MOST_TEXT} are allowed", text.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        head.text(text);
    }
    // Short tracks that belong to the layout, as with spares on every cylinder, repeat and are no exceptions.
    let (shapes, exceptions) = grammar::folded(map.runs());
    let with = body(&shapes, &exceptions);
    let without = body(&grammar::plain(map.runs()), &[]);
    let mut bytes = head.bytes;
    bytes.extend(if without.len() <= with.len() { without } else { with });
    let length = (bytes.len() + CHECKSUM) as u64;
    bytes[12..HEAD].copy_from_slice(&length.to_le_bytes());
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    out.write_all(&bytes)
}

fn body(shapes: &[Shape], exceptions: &[Exception]) -> Vec<u8> {
    let mut writer = Writer::default();
    let rules = grammar::rules(shapes);
    writer.number(rules.len() as u64);
    let mut last = 0;
    let mut made = 0;
    for rule in rules {
        match rule {
            Rule::Run((sectors, tracks)) => {
                writer.number(u64::from(tracks) << 1);
                writer.signed(i64::from(sectors) - last);
                made += 1;
            }
            Rule::Again { back, runs } => {
                writer.number(back << 1 | 1);
                writer.number(runs);
                made += runs as usize;
            }
        }
        last = i64::from(shapes[made - 1].0);
    }
    writer.number(exceptions.len() as u64);
    let mut next = 0;
    for exception in exceptions {
        writer.number(exception.track - next);
        writer.number(u64::from(exception.sectors));
        next = exception.track + 1;
    }
    writer.bytes
}

/// Reads a map and its disk.
///
/// *Errors:* no map, a later version, a truncated or damaged file, with the offset of the fault.
pub fn read(input: &mut impl Read) -> Result<(Identity, TrackMap), MapError> {
    let mut bytes = Vec::new();
    // Checked before the rest is read, because a device may never end.
    input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut bytes)?;
    if bytes.is_empty() || bytes != MAGIC[..bytes.len()] {
        return Err(MapError::NotAMap { found: String::from_utf8_lossy(&bytes).into_owned() });
    }
    input.take(MOST_BYTES + 1 - MAGIC.len() as u64).read_to_end(&mut bytes)?;
    let length = bytes.len() as u64;
    let least = (HEAD + CHECKSUM) as u64;
    let version = bytes.get(8..12).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    match version {
        Some(version) if version == 0 || version > VERSION => {
            return Err(MapError::Version { found: version, newest: VERSION });
        }
        Some(_) => {}
        None => return Err(MapError::Truncated { length, expected: least }),
    }
    let expected = bytes.get(12..HEAD).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    let expected = expected.ok_or(MapError::Truncated { length, expected: least })?;
    if expected < least || expected > MOST_BYTES {
        return Err(wrong(12, "the number of bytes", expected, format!("{least} to {MOST_BYTES}")));
    }
    if length < expected {
        return Err(MapError::Truncated { length, expected });
    }
    if length > expected {
        return Err(wrong(
            expected,
            "what follows the map",
            format!("{} bytes", length - expected),
            "nothing",
        ));
    }
    let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
    let (found, computed) =
        (u32::from_le_bytes(checksum.try_into().expect("it is four bytes")), crc32fast::hash(content));
    if found != computed {
        return Err(MapError::Checksum { at: content.len() as u64, found, computed });
    }
    contents(&mut Reader::new(content, HEAD))
}

fn contents(reader: &mut Reader<'_>) -> Result<(Identity, TrackMap), MapError> {
    let sectors = reader.number("the number of blocks", 1, 1 << 60)?;
    let sector_bytes = reader.number("the number of bytes in a block", 1, 1 << 20)? as u32;
    let physical_sectors = reader.number("the number of blocks in a physical sector", 1, 1 << 20)? as u32;
    let mut text =
        |what| reader.text(what, MOST_TEXT).map(|text| (!text.is_empty()).then(|| text.to_string()));
    let (name, serial) = (text("the name")?, text("the serial number")?);
    let identity = Identity { sectors, sector_bytes, physical_sectors, name, serial };
    let shapes = read_shapes(reader, sectors)?;
    let exceptions = read_exceptions(reader, &shapes)?;
    if !reader.is_at_end() {
        return Err(wrong(
            reader.position(),
            "what follows the last exception",
            "more bytes",
            "the checksum",
        ));
    }
    let map = grammar::map_of(&shapes, &exceptions);
    if map.end().0 <= sectors {
        Ok((identity, map))
    } else {
        Err(wrong(
            reader.position(),
            "the number of blocks on all tracks",
            map.end(),
            format!("up to {sectors}"),
        ))
    }
}

/// The runs that the rules make, which must not hold more blocks than the disk.
fn read_shapes(reader: &mut Reader<'_>, sectors: u64) -> Result<Vec<Shape>, MapError> {
    let mut shapes: Vec<Shape> = Vec::new();
    let mut held = 0u64;
    for _ in 0..reader.number("the number of rules", 0, MOST_RUNS)? {
        let begin = reader.position();
        let made = shapes.len() as u64;
        let head = reader.number("a rule", 2, u64::MAX)?;
        let (back, runs) = match head & 1 {
            0 => {
                let last = shapes.last().map_or(0, |shape| i64::from(shape.0));
                let sectors = reader.signed("a difference of sectors")?.checked_add(last);
                let sectors =
                    sectors.and_then(|sectors| u32::try_from(sectors).ok()).filter(|count| *count > 0);
                let tracks = u32::try_from(head >> 1).ok();
                let (Some(sectors), Some(tracks)) = (sectors, tracks) else {
                    return Err(wrong(begin, "a run", "none", "1 to 2^32-1 tracks of 1 to 2^32-1 sectors"));
                };
                shapes.push((sectors, tracks));
                (0, 1)
            }
            _ if head >> 1 > made => {
                return Err(wrong(begin, "a rule's way back", head >> 1, format!("1 to {made} runs")));
            }
            _ => (head >> 1, reader.number("the runs of a rule", 1, MOST_RUNS.saturating_sub(made))?),
        };
        for place in made..made + runs {
            if back > 0 {
                shapes.push(shapes[(place - back) as usize]);
            }
            let (each, tracks) = shapes[place as usize];
            held = held.saturating_add(u64::from(each) * u64::from(tracks));
            // Exceptions remove blocks, so the runs may hold somewhat more than the disk; this bounds them.
            if held > sectors.saturating_mul(2) {
                return Err(wrong(
                    begin,
                    "the number of blocks on all tracks",
                    held,
                    format!("up to {sectors}"),
                ));
            }
        }
    }
    Ok(shapes)
}

/// Tracks that differ from their runs; checks that the map is no larger than the disk.
fn read_exceptions(reader: &mut Reader<'_>, shapes: &[Shape]) -> Result<Vec<Exception>, MapError> {
    let tracks: u64 = shapes.iter().map(|shape| u64::from(shape.1)).sum();
    let mut exceptions = Vec::new();
    let mut next = 0;
    for _ in 0..reader.number("the number of exceptions", 0, MOST_RUNS)? {
        let most = (tracks - next).checked_sub(1);
        let Some(most) = most else {
            return Err(wrong(
                reader.position(),
                "an exception",
                "behind the last track",
                format!("{tracks} tracks"),
            ));
        };
        let track = next + reader.number("tracks to an exception", 0, most)?;
        let sectors = reader.number("the sectors of an exception", 1, u64::from(u32::MAX))? as u32;
        exceptions.push(Exception { track, sectors });
        next = track + 1;
    }
    Ok(exceptions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::{Geometry, drives};

    fn atlas() -> (Identity, TrackMap) {
        let spec = drives::load("atlas-10k").expect("it is shipped");
        let geometry = Geometry::new(&spec).expect("it holds");
        let identity = Identity {
            name: Some("QM309100TN".into()),
            serial: Some("1".into()),
            ..Identity::new(geometry.sectors(), 512)
        };
        (identity, TrackMap::of_geometry(&geometry))
    }

    fn bytes(identity: &Identity, map: &TrackMap) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, identity, map).expect("memory takes it");
        bytes
    }

    /// The file with other contents behind its header, and a valid checksum.
    fn made_of(contents: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer { bytes: MAGIC.to_vec() };
        writer.bytes.extend_from_slice(&VERSION.to_le_bytes());
        writer.bytes.extend_from_slice(&[0; 8]);
        [1000, 512, 1, 0, 0].into_iter().for_each(|number| writer.number(number));
        contents(&mut writer);
        let length = writer.bytes.len() as u64 + 4;
        writer.bytes[12..20].copy_from_slice(&length.to_le_bytes());
        let checksum = crc32fast::hash(&writer.bytes);
        writer.bytes.extend_from_slice(&checksum.to_le_bytes());
        writer.bytes
    }

    fn refused(bytes: &[u8]) -> String {
        let error = read(&mut &*bytes).expect_err("it is wrong").to_string();
        assert_eq!(error.lines().count(), 1);
        error
    }

    #[test]
    fn written_map_reads_back_unchanged() {
        let (identity, map) = atlas();
        let bytes = bytes(&identity, &map);
        assert_eq!(read(&mut &bytes[..]).expect("it was written"), (identity, map));
        assert!(bytes.len() < 800, "{} bytes", bytes.len());
    }

    #[test]
    fn every_truncated_or_changed_map_is_rejected() {
        let (identity, map) = atlas();
        let bytes = bytes(&identity, &map);
        for length in 0..bytes.len() {
            refused(&bytes[..length]);
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            refused(&changed);
        }
        refused(&[&bytes[..], b"x"].concat());
    }

    #[test]
    fn errors_name_byte_and_allowed_values() {
        let (identity, map) = atlas();
        let bytes = bytes(&identity, &map);
        let changed = |at: usize, to: u8| {
            let mut changed = bytes.clone();
            changed[at] = to;
            refused(&changed)
        };
        assert!(changed(3, b'!').starts_with("byte 0: "), "{}", changed(3, b'!'));
        assert_eq!(changed(8, 7), "byte 8: a track map of version 7; versions 1 to 1 can be read");
        let short = format!("byte 90: the track map ends here, and should have {} bytes", bytes.len());
        assert_eq!(refused(&bytes[..90]), short);
        assert!(changed(60, 0).contains("the checksum is"), "{}", changed(60, 0));
        for (contents, expect) in [
            (&[1u64, 5][..], "a rule's way back is 2; allowed is 1 to 0 runs"),
            (&[1, 2, 1], "a run is none"),
            (&[2, 200, 20, 3, 1 << 24], "the runs of a rule is 16777216"),
            (&[2, 200, 20, 3, 1 << 20], "the number of blocks on all tracks is"),
            (&[1, 200, 24, 0], "the number of blocks on all tracks is 1200; allowed is up to 1000"),
            (&[1, 20, 20, 1, 10, 9], "tracks to an exception is 10; allowed is 0 to 9"),
            (&[1, 20, 20, 2, 9, 9, 0, 9], "an exception is behind the last track"),
            (&[1, 20, 20, 0, 0], "what follows the last exception is more bytes"),
        ] {
            let error = refused(&made_of(|writer| contents.iter().for_each(|number| writer.number(*number))));
            assert!(error.contains(expect), "{error}");
            assert!(error.starts_with("byte "), "{error}");
        }
    }

    #[test]
    fn map_of_another_disk_is_rejected() {
        let (identity, _) = atlas();
        let other = |change: fn(&mut Identity)| {
            let mut other = identity.clone();
            change(&mut other);
            identity.admits(&other).map_err(|error| error.to_string())
        };
        assert_eq!(other(|_| ()), Ok(()));
        assert_eq!(other(|disk| disk.serial = None), Ok(()));
        assert_eq!(
            other(|disk| disk.serial = Some("2".into())),
            Err("the map is of a disk whose serial number is \"1\"; that of this one is \"2\"".into())
        );
        for change in [
            |disk: &mut Identity| disk.sectors += 1,
            |disk: &mut Identity| disk.sector_bytes = 4096,
            |disk: &mut Identity| disk.physical_sectors = 8,
            |disk: &mut Identity| disk.name = Some("QM309100TD".into()),
        ] {
            assert!(other(change).is_err());
        }
    }
}
