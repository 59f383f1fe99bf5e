//! Options whose value is a name of one of the project's lists.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use std::ffi::OsStr;

/// Parses an option whose value is a name. It may accept more names than the help lists.
#[derive(Clone)]
pub(crate) struct ListedName {
    /// The error for a text that is no name.
    pub(crate) check: fn(&str) -> Result<(), String>,
    pub(crate) known: fn() -> Vec<PossibleValue>,
}

impl TypedValueParser for ListedName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let text = value.to_string_lossy();
        match (self.check)(&text) {
            Ok(()) => Ok(text.into_owned()),
            Err(error) => Err(clap::Error::raw(ErrorKind::ValueValidation, error).with_cmd(command)),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.known)().into_iter()))
    }
}
