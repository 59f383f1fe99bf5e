//! Escapes text for a terminal, so that names and file contents cannot send it commands.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// Maximum characters of a word, such as a value or a path, in a message; and of a whole message.
const LONGEST_WORD: usize = 300;
const LONGEST_MESSAGE: usize = 3000;

/// Whether a character, other than a line break or a tab, would control the terminal: move the cursor, ring, colour or reverse the text.
fn is_command(letter: char) -> bool {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() && letter != '\n' && letter != '\t' || turns
}

/// A text with terminal commands escaped: `\u001b` in place of ESC, as in JSON, so that a JSON document stays one.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return Cow::Borrowed(text);
    }
    let shown = |letter: char| {
        if is_command(letter) { format!("\\u{:04x}", u32::from(letter)) } else { letter.to_string() }
    };
    text.chars().map(shown).collect::<String>().into()
}

/// A message of one line without terminal commands, with limited length of words and of the whole.
pub(crate) fn message(text: &str) -> String {
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    let plain = plain(&line);
    let words: Vec<Cow<'_, str>> = plain.split(' ').map(|word| cut(word, LONGEST_WORD)).collect();
    cut(&words.join(" "), LONGEST_MESSAGE).into_owned()
}

/// A text with its middle cut out if it is too long.
fn cut(text: &str, longest: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= longest {
        return text.into();
    }
    let head: String = text.chars().take(longest / 2).collect();
    let tail: String = text.chars().skip(count - longest / 4).collect();
    format!("{head}…{tail}").into()
}

/// Which letters an output can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    Unicode,
    /// ASCII only: any other character is replaced by a similar one, or by `?`.
    Ascii,
}

impl Letters {
    /// The letters that a stream can show. A terminal shows Unicode if the locale's encoding is UTF-8. A file or pipe gets the same bytes in any
    /// locale.
    pub(crate) fn shown_by(stream: &impl IsTerminal) -> Letters {
        if stream.is_terminal() && !is_utf8(&locale()) { Letters::Ascii } else { Letters::Unicode }
    }
}

/// The locale that determines the encoding: the first of these variables that is set, as in the C library.
#[allow(clippy::disallowed_methods, reason = "the terminal's encoding is in the environment")]
fn locale() -> String {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
    set.map(|value| value.to_string_lossy().into_owned()).find(|value| !value.is_empty()).unwrap_or_default()
}

fn is_utf8(locale: &str) -> bool {
    let encoding = locale.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    ["utf-8", "utf8"].iter().any(|name| encoding.starts_with(name))
}

/// A text in ASCII.
fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            _ if letter.is_ascii() => shown.push(letter),
            '─' | '–' | '—' | '━' => shown.push('-'),
            '│' => shown.push('|'),
            '±' => shown.push_str("+-"),
            '≈' => shown.push('~'),
            '…' => shown.push_str("..."),
            '×' => shown.push('x'),
            'µ' | 'μ' => shown.push('u'),
            '→' => shown.push_str("->"),
            '≤' => shown.push_str("<="),
            '≥' => shown.push_str(">="),
            '²' => shown.push('2'),
            _ => shown.push('?'),
        }
    }
    shown.into()
}

/// A writer that escapes terminal commands and shows only the letters that its output can.
pub(crate) struct Plain<W>(pub(crate) W, pub(crate) Letters);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let shown = match std::str::from_utf8(bytes) {
            Ok(text) => plain(text),
            // The text is cut within a character. Then only ASCII control characters can be recognized and escaped.
            Err(_) => {
                let letter = |byte: &u8| {
                    if byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t') {
                        vec![b'?']
                    } else {
                        vec![*byte]
                    }
                };
                self.0.write_all(&bytes.iter().flat_map(letter).collect::<Vec<u8>>())?;
                return Ok(bytes.len());
            }
        };
        match self.1 {
            Letters::Unicode => self.0.write_all(shown.as_bytes())?,
            Letters::Ascii => self.0.write_all(ascii(&shown).as_bytes())?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_escaped() {
        assert_eq!(plain("a\u{1b}]0;owned\u{7}b\r"), "a\\u001b]0;owned\\u0007b\\u000d");
        assert_eq!(plain("\u{9b}31m\u{202e}x"), "\\u009b31m\\u202ex");
        assert_eq!(plain("Größe ☃\n\tnext"), "Größe ☃\n\tnext");
        let mut out = Plain(Vec::new(), Letters::Unicode);
        out.write_all("title\n\u{1b}[2J".as_bytes()).expect("memory takes it");
        out.write_all(b"\xff\x1b[").expect("memory takes it");
        assert_eq!(out.0, b"title\n\\u001b[2J\xff?[");
    }

    #[test]
    fn letters_that_a_terminal_lacks_are_replaced_by_similar_ones() {
        let mut out = Plain(Vec::new(), Letters::Ascii);
        out.write_all("─ 195.8 ± 3.5 ≈ +0.0 %, µs: Größe".as_bytes()).expect("memory takes it");
        assert_eq!(out.0, b"- 195.8 +- 3.5 ~ +0.0 %, us: Gr??e");
        let is_known =
            ["C.UTF-8", "de_DE.utf8", "en_US.UTF-8@euro", "C", "POSIX", "de_DE.ISO-8859-1", ""].map(is_utf8);
        assert_eq!(is_known, [true, true, true, false, false, false, false]);
    }

    #[test]
    fn long_values_are_truncated_in_messages() {
        let long = format!("node.toml:3: key: `{}` is wrong; say less", "x".repeat(200_000));
        let said = message(&long);
        assert!(said.chars().count() < 400, "{}", said.len());
        assert!(said.starts_with("node.toml:3: key: `xxx") && said.ends_with("is wrong; say less"), "{said}");
        assert!(message(&"many words ".repeat(10_000)).chars().count() <= LONGEST_MESSAGE);
        assert_eq!(message("one\n  two\r\n\nthree"), "one; two; three");
    }
}
