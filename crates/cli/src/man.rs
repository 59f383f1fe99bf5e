//! `headstack man`: the manual pages, from the same definitions as the help.

use crate::failure::Failure;
use crate::files;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Print the manual page, or write a page for every command.
///
/// Without --out, the page of headstack itself goes to standard output: `headstack man | man -l -`.
#[derive(clap::Args)]
pub(crate) struct Man {
    /// Write a page for each command and subcommand into this folder: headstack.1, headstack-sim.1, …
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    /// Writes the pages of the command `headstack`, whose definition is `definition`.
    pub(crate) fn run(&self, definition: clap::Command, out: &mut dyn Write) -> Result<(), Failure> {
        // `help` repeats every command and needs no page.
        let mut definition = definition.disable_help_subcommand(true);
        definition.build();
        let Some(folder) = &self.out else {
            out.write_all(&page(&definition)?)?;
            return Ok(());
        };
        files::create_folder(folder)?;
        let pages = write_pages(&definition, folder)?;
        writeln!(out, "{pages} pages in {}", folder.display())?;
        Ok(())
    }
}

/// Writes the pages of a command and of all its subcommands, and returns their number.
fn write_pages(definition: &clap::Command, folder: &Path) -> Result<usize, Failure> {
    let name = definition.get_display_name().unwrap_or_else(|| definition.get_name());
    files::write_whole(&folder.join(format!("{name}.1")), &page(definition)?)?;
    let below = definition.get_subcommands().filter(|command| !command.is_hide_set());
    below.map(|command| write_pages(command, folder)).try_fold(1, |sum, pages| Ok(sum + pages?))
}

/// A manual page in roff.
fn page(definition: &clap::Command) -> Result<Vec<u8>, Failure> {
    let mut roff = Vec::new();
    clap_mangen::Man::new(definition.clone()).manual("Headstack").render(&mut roff)?;
    Ok(roff)
}
