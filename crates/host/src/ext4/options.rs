//! The user's options of mke2fs.

use super::Ext4Error;

/// Options that repeat a setting of the plan, or make something else.
const REFUSED: [&str; 8] = ["-b", "-l", "-c", "-n", "-S", "-t", "-V", "-C"];
/// Options that take a value.
const WITH_VALUE: &str = "bCEegGIiJlLmMNOorTtUzd";
/// Why `-d` is refused.
const TOO_EARLY: &str =
    "mke2fs lays what it copies before all blocks at boundaries are held; mount it and copy";
/// Why a journal elsewhere is refused.
const OTHER_JOURNAL: &str = "a dry run would enter that in the journal's device";
/// Why `-z` is refused.
const UNDO: &str = "what is put on the disk after mke2fs could not be undone by it";

/// Options of mke2fs, each with its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    given: Vec<(String, Option<String>)>,
}

impl Options {
    /// Parses the words.
    ///
    /// *Errors:* an option that is not allowed, or a word that is no option.
    pub(super) fn parse(words: &[String]) -> Result<Options, Ext4Error> {
        let mut given = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let letter = word.chars().nth(1).filter(|_| word.starts_with('-') && word.is_ascii());
            let Some(letter) = letter.filter(char::is_ascii_alphabetic) else {
                return Err(Ext4Error::Option(word.clone()));
            };
            let option = format!("-{letter}");
            if REFUSED.contains(&&*option) {
                return Err(Ext4Error::Option(option));
            }
            let value = match WITH_VALUE.contains(letter) {
                true if word.len() > 2 => Some(word[2..].to_string()),
                true => Some(words.next().ok_or_else(|| Ext4Error::Option(word.clone()))?.clone()),
                false if word.len() > 2 => return Err(Ext4Error::Option(word.clone())),
                false => None,
            };
            if let Some(why) = harm(&option, value.as_deref().unwrap_or_default()) {
                return Err(Ext4Error::HarmfulOption { option, why });
            }
            given.push((option, value));
        }
        Ok(Options { given })
    }

    pub(super) fn has(&self, options: &[&str]) -> bool {
        self.given.iter().any(|(option, _)| options.contains(&option.as_str()))
    }

    pub(super) fn without(&self, option: &str) -> Options {
        Options { given: self.given.iter().filter(|(given, _)| given != option).cloned().collect() }
    }

    pub(super) fn with(mut self, option: &str, value: String) -> Options {
        self.given.push((option.to_string(), Some(value)));
        self
    }

    pub(super) fn with_flag(mut self, option: &str) -> Options {
        self.given.push((option.to_string(), None));
        self
    }

    /// A copy with another feature in the list of features: mke2fs uses the last list only.
    pub(super) fn with_feature(&self, feature: &str) -> Options {
        let mut features: Vec<String> = Vec::new();
        features.extend(
            self.given.iter().filter(|(option, _)| option == "-O").filter_map(|(_, value)| value.clone()),
        );
        features.push(feature.to_string());
        self.without("-O").with("-O", features.join(","))
    }

    /// As arguments of mke2fs.
    pub(super) fn words(&self) -> Vec<String> {
        let words = self.given.iter().flat_map(|(option, value)| [Some(option.clone()), value.clone()]);
        words.flatten().collect()
    }
}

/// What an option does outside the file system, or to the location of its data.
fn harm(option: &str, value: &str) -> Option<&'static str> {
    let is_elsewhere = |part: &str| part.split('=').next().is_some_and(|key| key.trim() == "device");
    match option {
        "-d" => Some(TOO_EARLY),
        "-z" => Some(UNDO),
        "-J" if value.split(',').any(is_elsewhere) => Some(OTHER_JOURNAL),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
        Options::parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn feature_options_are_joined_into_one() {
        let options = parse("-O ^64bit -L name -m0 -Oquota").expect("they are good");
        assert_eq!(options.with_feature("^x").words(), ["-L", "name", "-m", "0", "-O", "^64bit,quota,^x"]);
        assert!(options.has(&["-N", "-m"]) && !options.has(&["-N"]));
    }

    #[test]
    fn unsupported_mke2fs_option_is_rejected() {
        for (words, at) in
            [("-b 1024", "-b"), ("-L x -l y", "-l"), ("/dev/sda", "/dev/sda"), ("-N", "-N"), ("-", "-")]
        {
            let reported = parse(words).expect_err(words);
            assert!(reported.contains(&format!("option {at} of")), "{reported}");
        }
    }

    #[test]
    fn option_touching_other_disks_or_data_is_rejected() {
        for words in ["-J device=/dev/sdb", "-Jsize=64,device=UUID=1", "-z undo", "-zundo", "-d folder"] {
            let reported = parse(words).expect_err(words);
            assert!(reported.contains(&format!("option {} of", &words[..2])), "{reported}");
        }
        assert!(parse("-J size=64,location=0 -L device=x").is_ok());
    }
}
