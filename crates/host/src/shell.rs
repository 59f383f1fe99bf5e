//! Quotes words of commands that are printed for users to copy.

use std::path::Path;

/// A path as one word of a shell's command line.
pub fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    // Only NUL cannot be quoted, and no path contains it.
    shlex::try_quote(&path).map_or_else(|_| path.to_string(), |word| word.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_with_shell_characters_is_quoted() {
        let quoted = |path: &str| quoted(Path::new(path));
        assert_eq!(quoted("/home/me/disks/disk0"), "/home/me/disks/disk0");
        assert_eq!(quoted("/tmp/mnt \u{2603}/disk0"), "'/tmp/mnt \u{2603}/disk0'");
        assert_eq!(quoted("a;b$(c)"), "'a;b$(c)'");
    }
}
