//! What commands share that run until they are asked to end: signals, a command that runs meanwhile, figures over HTTP.

pub(crate) mod child;
pub(crate) mod endpoint;
pub(crate) mod events;
pub(crate) mod metrics;

/// A name as a part of an environment variable's.
pub(crate) fn variable(name: &str) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_name_made_one_of_a_variable() {
        assert_eq!(variable("disk0"), "DISK0");
        assert_eq!(variable("my-disk.2"), "MY_DISK_2");
    }
}
