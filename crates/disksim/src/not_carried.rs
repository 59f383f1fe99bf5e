//! What an import leaves out.

use std::fmt;

/// Returns the text of a file that an imported one names.
pub(crate) type Reader<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

/// A key that was not carried over as it is. Displays as one line: `file:line: key: why`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub struct NotCarried {
    pub file: String,
    /// Its line, counted from 1.
    pub line: usize,
    /// The key, or the block.
    pub key: String,
    /// Why it was left out, or what replaces it.
    pub why: String,
}

impl fmt::Display for NotCarried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.why)
    }
}
