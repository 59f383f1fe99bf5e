//! A map as lines of `lbn sectors`, one per track, for other tools; a `#` begins a comment.

use super::{Identity, TextError, TrackMap};
use std::io::{self, BufRead, Write};

/// Writes a map as text.
///
/// *Errors:* writing fails.
pub fn write_text(out: &mut impl Write, identity: &Identity, map: &TrackMap) -> io::Result<()> {
    writeln!(out, "# track map 1: {} blocks of {} bytes", identity.sectors, identity.sector_bytes)?;
    for (what, value) in [("name", &identity.name), ("serial", &identity.serial)] {
        if let Some(value) = value {
            writeln!(out, "# {what}: {}", value.escape_debug())?;
        }
    }
    writeln!(out, "# lbn sectors")?;
    map.iter().try_for_each(|track| writeln!(out, "{} {}", track.first, track.sectors))
}

/// Reads a map from text.
///
/// *Errors:* a line that is no block and number of sectors, and a track that does not begin where the previous one ends.
pub fn read_text(input: impl BufRead) -> Result<TrackMap, TextError> {
    let mut map = TrackMap::new();
    for (number, line) in (1..).zip(input.lines()) {
        let line = line?;
        let words = line.split('#').next().unwrap_or("").trim();
        if words.is_empty() {
            continue;
        }
        let end = map.end().0;
        let wrong = || TextError::Line {
            line: number,
            found: words.chars().take(60).collect(),
            allowed: format!(
                "`{end} SECTORS`: the block after the last track, and how many the next one holds"
            ),
        };
        let (first, sectors) = words.split_once(char::is_whitespace).ok_or_else(wrong)?;
        let first: u64 = first.parse().map_err(|_| wrong())?;
        let sectors: u32 = sectors.trim().parse().map_err(|_| wrong())?;
        if first != end || sectors == 0 || end.checked_add(u64::from(sectors)).is_none() {
            return Err(wrong());
        }
        map.push(sectors, 1);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_map_reads_back_unchanged() {
        let mut map = TrackMap::new();
        map.push(10, 3);
        map.push(9, 1);
        let identity = Identity { name: Some("a\nb".into()), ..Identity::new(39, 512) };
        let mut text = Vec::new();
        write_text(&mut text, &identity, &map).expect("memory takes it");
        assert!(String::from_utf8_lossy(&text).ends_with("20 10\n30 9\n"));
        assert_eq!(read_text(&text[..]).expect("it was written"), map);
    }

    #[test]
    fn malformed_line_is_rejected_with_its_number() {
        for (text, line) in [("0 5\n6 5\n", 2), ("# a\n\n0\n", 3), ("0 0", 1), ("0 5 6", 1), ("x 5", 1)] {
            let error = read_text(text.as_bytes()).expect_err(text).to_string();
            assert!(error.starts_with(&format!("line {line}: `")), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }
}
