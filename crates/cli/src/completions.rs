//! `headstack completions`: a script with which a shell completes commands, options and their values.

use crate::failure::Failure;
use clap_complete::generate;
use std::io::Write;

/// Print a script that makes a shell complete commands, options and values.
///
/// The script goes to standard output. Load it in the running shell with `source <(headstack completions bash)`, or
/// put it where the shell looks for scripts: bash /usr/share/bash-completion/completions/headstack, zsh
/// /usr/share/zsh/vendor-completions/_headstack, fish /usr/share/fish/vendor_completions.d/headstack.fish.
#[derive(clap::Args)]
pub(crate) struct CompletionScript {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl CompletionScript {
    /// Prints the script for the command `headstack`, whose definition is `definition`.
    pub(crate) fn run(&self, mut definition: clap::Command, out: &mut dyn Write) -> Result<(), Failure> {
        let name = definition.get_name().to_string();
        // The generators panic if the writer fails, for example when the reader closes the pipe.
        let mut script = Vec::new();
        match self.shell {
            Shell::Bash => generate(clap_complete::Shell::Bash, &mut definition, name, &mut script),
            Shell::Zsh => generate(clap_complete::Shell::Zsh, &mut definition, name, &mut script),
            Shell::Fish => generate(clap_complete::Shell::Fish, &mut definition, name, &mut script),
        }
        out.write_all(&script)?;
        Ok(())
    }
}
