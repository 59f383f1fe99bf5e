//! `headstack trace formats`, and formats as arguments.

use crate::failure::Failure;
use crate::report::Table;
use clap::builder::{PossibleValue, PossibleValuesParser};
use headstack_workload::trace::{self, Encoding, Format};
use std::io::Write;

/// List the trace formats.
#[derive(clap::Args)]
pub(crate) struct Formats {}

impl Formats {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut table =
            Table::new("Formats", &["name", "title", "kind", "endings", "a request"]).with_words(5);
        for format in trace::all() {
            let kind = if format.encoding == Encoding::Text { "text" } else { "binary" };
            let endings = format.extensions.iter().map(|ending| format!(".{ending}")).collect::<Vec<_>>();
            table.row([
                format.name.to_string(),
                format.title.to_string(),
                kind.to_string(),
                endings.join(" "),
                format.form.to_string(),
            ]);
        }
        write!(out, "{}", table.to_text())?;
        Ok(())
    }
}

pub(crate) fn values() -> PossibleValuesParser {
    let value = |format: &Format| PossibleValue::new(format.name).help(format.title);
    PossibleValuesParser::new(trace::all().iter().map(value).collect::<Vec<_>>())
}

pub(crate) fn named(name: Option<&String>) -> Option<&'static Format> {
    name.and_then(|name| trace::named(name))
}
