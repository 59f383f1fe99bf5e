//! Finds the page of a running command's disks, which that command serves itself.

use crate::failure::Failure;
use std::io::Write;
use std::time::Duration;

/// Longest wait for an answer of the running command.
const PATIENCE: Duration = Duration::from_secs(5);

/// Checks that the command at an address serves a page of its disks, and prints where.
pub(super) fn find(address: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let page = format!("{}/explore", address.trim_end_matches('/'));
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build();
    let answer = ureq::Agent::new_with_config(config).get(&page).call();
    answer.map_err(|error| {
        let hint = "start `headstack emulate` or `headstack serve` with --metrics, and give its address";
        Failure::Input(format!("{page}: {error}; {hint}"))
    })?;
    writeln!(out, "{page} shows the disks live")?;
    Ok(())
}
