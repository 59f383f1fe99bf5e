//! What all commands have in common on the command line: numbers may be negative, so that their range is what a message names, and `--json=FILE`
//! writes what `--json` prints.

use clap::{ArgAction, Command};
use std::ffi::OsString;
use std::path::PathBuf;

/// The command with numbers that may be negative wherever an option takes a value.
pub(crate) fn with_negative_numbers(command: Command) -> Command {
    let takes_value = |arg: &clap::Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let command = command.mut_args(|arg| {
        let takes_number = takes_value(&arg) && !arg.is_positional();
        if takes_number { arg.allow_negative_numbers(true) } else { arg }
    });
    command.mut_subcommands(with_negative_numbers)
}

/// Takes the file out of `--json=FILE` where `--json` is a flag of the command that `arguments` name, and leaves the flag.
pub(crate) fn take_json_file(
    command: &Command,
    arguments: Vec<OsString>,
) -> (Vec<OsString>, Option<PathBuf>) {
    let mut named = command;
    for word in arguments.iter().skip(1) {
        match word.to_str().and_then(|word| named.find_subcommand(word)) {
            Some(found) => named = found,
            None => break,
        }
    }
    let is_json = |arg: &&clap::Arg| arg.get_long() == Some("json");
    let is_flag =
        named.get_arguments().find(is_json).is_some_and(|arg| matches!(arg.get_action(), ArgAction::SetTrue));
    let mut file = None;
    let mut take = |word: OsString| match word.to_str().and_then(|word| word.strip_prefix("--json=")) {
        Some(name) if is_flag && !name.is_empty() => {
            file = (name != "-").then(|| PathBuf::from(name));
            "--json".into()
        }
        _ => word,
    };
    let ends = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let mut before = arguments;
    let after = before.split_off(ends);
    let taken = before.into_iter().map(&mut take).chain(after).collect();
    (taken, file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn taken(line: &str) -> (String, Option<PathBuf>) {
        let command = crate::Cli::command();
        let (words, file) = take_json_file(&command, line.split(' ').map(OsString::from).collect());
        (words.join(std::ffi::OsStr::new(" ")).into_string().expect("it is text"), file)
    }

    #[test]
    fn file_of_json_is_taken_where_json_is_a_flag() {
        let file = |name: &str| Some(PathBuf::from(name));
        assert_eq!(
            taken("headstack trace stat a --json=t.json"),
            ("headstack trace stat a --json".to_string(), file("t.json"))
        );
        assert_eq!(taken("headstack tune a b --json=-"), ("headstack tune a b --json".to_string(), None));
        let sim = "headstack sim a b --json=t.json";
        assert_eq!(taken(sim), (sim.to_string(), None));
        let other = "headstack emulate null -- fio --json=x";
        assert_eq!(taken(other), (other.to_string(), None));
    }
}
