//! The exports that a client may see.

use crate::access::Peer;
use crate::export::{Export, Exports};
use headstack_model::spec::did_you_mean;

/// The exports without those that the client may not use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VisibleExports<'a> {
    pub(crate) exports: &'a Exports,
    pub(crate) peer: &'a Peer,
}

impl<'a> VisibleExports<'a> {
    pub(crate) fn all(self) -> impl Iterator<Item = (usize, &'a Export)> {
        let is_visible = move |export: &Export| {
            export.allow.is_empty() || export.allow.iter().any(|allow| allow.holds_for(self.peer))
        };
        self.exports.all().iter().enumerate().filter(move |(_, export)| is_visible(export))
    }

    /// The export with this name; the empty name is also that of the first export.
    pub(crate) fn find(self, name: &[u8]) -> Option<(usize, &'a Export)> {
        let named = self.all().find(|(_, export)| export.name.as_bytes() == name);
        named.or_else(|| self.all().next().filter(|_| name.is_empty()))
    }

    /// An unknown name as shown in a message, and the hint at the end of the message.
    pub(crate) fn unknown(self, name: &[u8]) -> (String, String) {
        let text = String::from_utf8_lossy(name);
        let met: String = text.chars().take(64).flat_map(char::escape_debug).collect();
        // A message has the same length limit as any string of the protocol.
        let short = self.all().map(|(_, export)| export.name.as_str()).filter(|name| name.len() <= 256);
        let hint = did_you_mean(&met, short);
        (met, hint)
    }
}
