//! Own names for the columns of a table: `time_us=when,lba=where`.

use std::io::{self, BufRead, Cursor, Read};

use super::table;

/// Which columns of a table are what: pairs of a known name and the name in the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnNames {
    pairs: Vec<(String, String)>,
}

impl ColumnNames {
    /// Parses `time_us=NAME,lba=NAME`. The names before `=` are those that a table may have, with their units.
    ///
    /// *Errors:* one line that says what is allowed.
    pub fn parse(text: &str) -> Result<ColumnNames, String> {
        let pair = |pair: &str| {
            let (known, own) =
                pair.split_once('=').ok_or_else(|| format!("`{pair}` is no pair such as lba=NAME"))?;
            if table::meaning(known).is_none() {
                return Err(format!(
                    "`{known}` is no column of a trace: time_s (ms, us, ns), op, offset, lba, bytes, sectors, device, \
                     response_s (ms, us, ns), process"
                ));
            }
            Ok((known.trim().to_string(), own.trim().to_string()))
        };
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        Ok(ColumnNames { pairs: parts.map(pair).collect::<Result<_, _>>()? })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The name that a column is to have: the known one for one that is named, and none for others that would be taken for it.
    fn renamed<'a>(&'a self, name: &'a str) -> &'a str {
        if let Some((known, _)) = self.pairs.iter().find(|(_, own)| own == name) {
            return known;
        }
        let Some((what, _)) = table::meaning(name) else { return name };
        let is_taken =
            self.pairs.iter().any(|(known, _)| table::meaning(known).is_some_and(|(other, _)| other == what));
        if is_taken { "-" } else { name }
    }

    /// The input with the columns of its first line renamed.
    ///
    /// *Errors:* the line has no column of a name, or cannot be read.
    pub(super) fn apply<'a>(&self, mut input: Box<dyn BufRead + 'a>) -> io::Result<Box<dyn BufRead + 'a>> {
        let mut line = Vec::new();
        input.by_ref().take(super::error::LONGEST_LINE as u64).read_until(b'\n', &mut line)?;
        let line = String::from_utf8_lossy(&line);
        let separator = *['\t', ';', ','].iter().find(|separator| line.contains(**separator)).unwrap_or(&',');
        let plain = |name: &'_ str| name.trim().trim_matches('"').to_string();
        let names: Vec<String> = line.split(separator).map(plain).collect();
        if let Some((_, own)) = self.pairs.iter().find(|(_, own)| !names.contains(own)) {
            let all: Vec<&str> = names.iter().map(String::as_str).take(20).collect();
            let message = format!("the header has no column `{own}`; it has {}", all.join(", "));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let renamed: Vec<&str> = names.iter().map(|name| self.renamed(name)).collect();
        let first = renamed.join(&separator.to_string()) + "\n";
        Ok(Box::new(Cursor::new(first.into_bytes()).chain(input)))
    }
}
