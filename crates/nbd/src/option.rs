//! The options of the handshake, and their replies.

use super::buffer::Buffer;
use super::export::Export;
use super::limits::{Breach, Limits};
use super::proto::{self, Fields, put_option_reply};
use super::request::Terms;
use super::visible::VisibleExports;

#[derive(Clone, Copy, Debug)]
pub(super) struct OptionHeader {
    pub(super) option: u32,
    pub(super) length: u32,
}

impl OptionHeader {
    pub(super) const BYTES: usize = 16;

    /// Parses a header, if there are enough bytes.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<OptionHeader>, Breach> {
        let mut fields = Fields(bytes);
        let Some(magic) = fields.u64() else { return Ok(None) };
        if magic != proto::OPTION_MAGIC {
            return Err(Breach::OptionMagic { met: magic });
        }
        let (Some(option), Some(length)) = (fields.u32(), fields.u32()) else { return Ok(None) };
        Ok(Some(OptionHeader { option, length }))
    }

    pub(super) fn is_known(&self) -> bool {
        use proto::*;
        let served = [
            OPT_EXPORT_NAME,
            OPT_ABORT,
            OPT_LIST,
            OPT_STARTTLS,
            OPT_INFO,
            OPT_GO,
            OPT_STRUCTURED_REPLY,
            OPT_LIST_META_CONTEXT,
            OPT_SET_META_CONTEXT,
        ];
        served.contains(&self.option)
    }
}

/// The error reply to an option.
struct Failure {
    reply: u32,
    message: String,
}

fn invalid(message: &str) -> Failure {
    Failure { reply: proto::REP_ERR_INVALID, message: message.to_string() }
}

#[derive(Debug, Default)]
pub(super) struct Choice {
    structured: bool,
    /// The export of the last negotiated allocation context.
    allocation: Option<usize>,
}

impl Choice {
    pub(super) fn terms(&self, export: usize) -> Terms {
        let structured = self.structured;
        Terms { structured, allocation: structured && self.allocation == Some(export) }
    }

    /// Chooses an export by `EXPORT_NAME`, which has no error reply.
    pub(super) fn by_name(
        &self,
        shown: VisibleExports<'_>,
        name: &[u8],
        padding: bool,
        out: &mut Buffer,
        enter: impl FnOnce(usize) -> Result<(), String>,
    ) -> Result<usize, Breach> {
        let Some((index, export)) = shown.find(name) else {
            let (met, hint) = shown.unknown(name);
            return Err(Breach::UnknownExport { met, hint });
        };
        enter(index).map_err(|message| Breach::Full { message })?;
        out.push(&export.bytes.to_be_bytes());
        out.push(&export.flags(self.structured).to_be_bytes());
        if padding {
            out.push(&proto::PADDING);
        }
        Ok(index)
    }

    /// Replies to an option; returns the export, if the option chooses one.
    ///
    /// *Errors:* the error reply to the client.
    pub(super) fn answer(
        &mut self,
        shown: VisibleExports<'_>,
        limits: &Limits,
        (option, data): (u32, &[u8]),
        out: &mut Buffer,
        enter: impl FnOnce(usize) -> Result<(), String>,
    ) -> Result<Option<usize>, String> {
        let result = match option {
            proto::OPT_LIST => list(shown, data, out).map(|()| None),
            proto::OPT_STRUCTURED_REPLY => self.structure(data).map(|()| None),
            proto::OPT_INFO => self.inform(shown, option, data, out, |_| Ok(())).map(|_| None),
            proto::OPT_GO => self.inform(shown, option, data, out, enter).map(Some),
            _ => self.contexts(shown, limits, option, data, out).map(|()| None),
        };
        let (reply, message) = match &result {
            Ok(_) => (proto::REP_ACK, ""),
            Err(Failure { reply, message }) => (*reply, message.as_str()),
        };
        put_option_reply(out, option, reply, &[message.as_bytes()]);
        result.map_err(|failure| failure.message)
    }

    fn structure(&mut self, data: &[u8]) -> Result<(), Failure> {
        if !data.is_empty() {
            return Err(invalid("structured replies are asked for without data"));
        }
        self.structured = true;
        Ok(())
    }

    fn inform(
        &self,
        shown: VisibleExports<'_>,
        option: u32,
        data: &[u8],
        out: &mut Buffer,
        enter: impl FnOnce(usize) -> Result<(), String>,
    ) -> Result<usize, Failure> {
        let (name, wanted) =
            information(data).ok_or_else(|| invalid("a name or a list that does not fill the option"))?;
        let (index, export) = find(shown, name)?;
        enter(index).map_err(|message| Failure { reply: proto::REP_ERR_POLICY, message })?;
        let mut put = |kind: u16, parts: [&[u8]; 3]| {
            let [a, b, c] = parts;
            put_option_reply(out, option, proto::REP_INFO, &[&kind.to_be_bytes(), a, b, c]);
        };
        let Export { bytes, blocks, .. } = export;
        put(proto::INFO_EXPORT, [&bytes.to_be_bytes(), &export.flags(self.structured).to_be_bytes(), &[]]);
        // Sent to all clients, because the disk has no smaller blocks.
        put(
            proto::INFO_BLOCK_SIZE,
            [&blocks.minimum.to_be_bytes(), &blocks.preferred.to_be_bytes(), &blocks.maximum.to_be_bytes()],
        );
        let asked = |kind: u16| wanted.chunks_exact(2).any(|item| item == kind.to_be_bytes());
        if asked(proto::INFO_NAME) {
            put(proto::INFO_NAME, [export.name.as_bytes(), &[], &[]]);
        }
        if asked(proto::INFO_DESCRIPTION) && !export.description.is_empty() {
            put(proto::INFO_DESCRIPTION, [export.description.as_bytes(), &[], &[]]);
        }
        Ok(index)
    }

    fn contexts(
        &mut self,
        shown: VisibleExports<'_>,
        limits: &Limits,
        option: u32,
        data: &[u8],
        out: &mut Buffer,
    ) -> Result<(), Failure> {
        let settle = option == proto::OPT_SET_META_CONTEXT;
        if settle {
            self.allocation = None;
            if !self.structured {
                return Err(invalid("metadata contexts need structured replies"));
            }
        }
        let mut fields = Fields(data);
        let short = || invalid("a name or a query reaches beyond the option");
        let name = fields.string().ok_or_else(short)?;
        let count = fields.u32().ok_or_else(short)?;
        if count > limits.queries {
            let message = format!("{count} queries, where {} are allowed", limits.queries);
            return Err(Failure { reply: proto::REP_ERR_TOO_BIG, message });
        }
        let mut wanted = count == 0 && !settle;
        for _ in 0..count {
            let query = fields.string().ok_or_else(short)?;
            wanted |= query == proto::CONTEXT.as_bytes() || (query == b"base:" && !settle);
        }
        if !fields.is_empty() {
            return Err(invalid("bytes after the last query"));
        }
        let (index, _) = find(shown, name)?;
        if wanted {
            // The ID has a meaning only when contexts are set.
            let id = if settle { proto::CONTEXT_ID } else { 0 };
            let parts = [&id.to_be_bytes(), proto::CONTEXT.as_bytes()];
            put_option_reply(out, option, proto::REP_META_CONTEXT, &parts);
            self.allocation = if settle { Some(index) } else { self.allocation };
        }
        Ok(())
    }
}

/// The name of the export and the requested information of an option's data.
fn information(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = Fields(data);
    let name = fields.string()?;
    let count = fields.u16()?;
    let wanted = fields.take_bytes(usize::from(count) * 2)?;
    fields.is_empty().then_some((name, wanted))
}

fn find<'a>(shown: VisibleExports<'a>, name: &[u8]) -> Result<(usize, &'a Export), Failure> {
    shown.find(name).ok_or_else(|| {
        let (met, hint) = shown.unknown(name);
        Failure { reply: proto::REP_ERR_UNKNOWN, message: format!("no export `{met}`{hint}") }
    })
}

fn list(shown: VisibleExports<'_>, data: &[u8], out: &mut Buffer) -> Result<(), Failure> {
    if !data.is_empty() {
        return Err(invalid("a list is asked for without data"));
    }
    for (_, Export { name, description, .. }) in shown.all() {
        let length = u32::try_from(name.len()).expect("names are checked to be short");
        let parts = [&length.to_be_bytes(), name.as_bytes(), description.as_bytes()];
        put_option_reply(out, proto::OPT_LIST, proto::REP_SERVER, &parts);
    }
    Ok(())
}
