//! The common parts of commands that run until a signal ends them: signals, a child command, figures over HTTP, lines on a terminal, the
//! load of the machine, and the summary.

pub(crate) mod child;
pub(crate) mod daemon;
pub(crate) mod endpoint;
pub(crate) mod events;
pub(crate) mod figures;
pub(crate) mod hosts;
pub(crate) mod lines;
pub(crate) mod log;
pub(crate) mod machine;
pub(crate) mod metrics;
pub(crate) mod patience;

use crate::failure::Failure;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// A folder for the socket of disks that only `command` uses, where no place `is_named` at which others find them.
pub(crate) fn own_socket(is_named: bool, command: &[String]) -> Result<Option<tempfile::TempDir>, Failure> {
    if is_named || command.is_empty() { Ok(None) } else { private_folder().map(Some) }
}

/// A folder that no other user can access, whatever the umask.
fn private_folder() -> Result<tempfile::TempDir, Failure> {
    let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir();
    folder.map_err(|error| Failure::Input(format!("a folder for a socket: {error}")))
}

/// A name in the form that the name of an environment variable can contain: capitals, digits and underscores.
pub(crate) fn variable(name: &str) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    name.chars().map(letter).collect()
}

pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if (Duration::from_millis(50)..=Duration::from_secs(86_400)).contains(&time) => Ok(time),
        Ok(_) => Err("must be 50ms to 1day".to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// The result of a command: the first failure among the disks' end, the exit code of a child command, if there is one, and the printing of
/// figures.
pub(crate) fn outcome(
    ended: Result<(), Failure>,
    code: Option<u8>,
    reported: io::Result<()>,
) -> Result<(), Failure> {
    match code {
        None => ended.and(reported.map_err(Failure::Output)),
        // With a child command the figures go to standard error. If that fails, there is no other place to report it.
        Some(0) => ended,
        Some(code) => ended.and(Err(Failure::Command(code))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_name_maps_to_an_environment_variable() {
        assert_eq!(variable("disk0"), "DISK0");
        assert_eq!(variable("my-disk.2"), "MY_DISK_2");
    }

    #[test]
    fn private_folder_is_accessible_to_its_owner_only() {
        let folder = private_folder().expect("there is room for it");
        let mode = folder.path().metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn closed_output_hides_neither_data_loss_nor_exit_code() {
        let closed = || Err(io::Error::from(io::ErrorKind::BrokenPipe));
        let lost = || Err(Failure::Input("disk0: no room".to_string()));
        assert!(matches!(outcome(lost(), None, closed()), Err(Failure::Input(_))));
        assert!(matches!(outcome(lost(), Some(0), closed()), Err(Failure::Input(_))));
        assert!(matches!(outcome(lost(), Some(7), Ok(())), Err(Failure::Input(_))));
        assert!(matches!(outcome(Ok(()), Some(7), closed()), Err(Failure::Command(7))));
        assert!(matches!(outcome(Ok(()), None, closed()), Err(Failure::Output(_))));
        assert!(matches!(outcome(Ok(()), Some(0), closed()), Ok(())));
    }
}
