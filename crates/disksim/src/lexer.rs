//! Words, numbers and punctuation of DiskSim's parameter language, with `source FILE` read in place.

use crate::not_carried::Reader;
use headstack_model::SpecError;
use std::rc::Rc;

const NESTED_MAX: usize = 32;
/// Maximum number of files in an import, because files may source each other endlessly.
const FILES_MAX: usize = 256;
/// Maximum bytes of all files of an import.
const BYTES_MAX: usize = 16 << 20;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) file: Rc<str>,
    pub(crate) line: usize,
}

impl Place {
    pub(crate) fn start(file: &str) -> Place {
        Place { file: file.into(), line: 1 }
    }

    pub(crate) fn error(&self, key: &str, message: impl Into<String>) -> SpecError {
        SpecError {
            origin: self.file.to_string(),
            line: self.line,
            key: key.to_string(),
            message: message.into(),
        }
    }

    /// The name of a file that this one names, for the reader: relative to this file's folder.
    pub(crate) fn beside(&self, name: &str, top: &str) -> String {
        match self.file.rsplit_once('/') {
            Some((folder, _)) if *self.file != *top && !name.starts_with('/') => format!("{folder}/{name}"),
            _ => name.to_string(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Int(i64),
    Float(f64),
    /// One of `{ } [ ] , = ; : ?`.
    Mark(char),
    /// `..`
    Range,
}

impl Token {
    pub(crate) fn show(&self) -> String {
        match self {
            Token::Word(word) => format!("`{}`", word.chars().take(60).collect::<String>()),
            Token::Int(number) => format!("`{number}`"),
            Token::Float(number) => format!("`{number}`"),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::Range => "`..`".to_string(),
        }
    }
}

/// The tokens of a text and of the files that it sources.
pub(crate) struct Lexer<'a> {
    read: &'a mut Reader<'a>,
    top: &'a str,
    files: usize,
    bytes: usize,
    pub(crate) tokens: Vec<(Token, Place)>,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(top: &'a str, read: &'a mut Reader<'a>) -> Lexer<'a> {
        Lexer { read, top, files: 0, bytes: 0, tokens: Vec::new() }
    }

    /// Reads `text`, the content of `file`, and the files that it sources.
    pub(crate) fn run(&mut self, text: &str, file: &str, nested: usize) -> Result<(), SpecError> {
        let file: Rc<str> = Rc::from(file);
        self.bytes += text.len();
        if self.bytes > BYTES_MAX {
            let message = format!("more than {BYTES_MAX} bytes in all");
            return Err(Place { file, line: 1 }.error("", message));
        }
        let mut source_at = None;
        for (index, line) in text.lines().enumerate() {
            let place = Place { file: file.clone(), line: index + 1 };
            let mut rest = line;
            while let Some(piece) = next_piece(&mut rest) {
                match (piece, source_at.take()) {
                    (Piece::Mark(_), Some(_)) => {
                        return Err(place.error("source", "needs the name of a file"));
                    }
                    (Piece::Mark(mark), None) => self.tokens.push((Token::Mark(mark), place.clone())),
                    (Piece::Word(name), Some(at)) => self.include(name, &at, nested)?,
                    (Piece::Word("source"), None) => source_at = Some(place.clone()),
                    (Piece::Word(word), None) => self.tokens.push((classify(word), place.clone())),
                }
            }
        }
        match source_at {
            Some(place) => Err(place.error("source", "needs the name of a file")),
            None => Ok(()),
        }
    }

    fn include(&mut self, name: &str, place: &Place, nested: usize) -> Result<(), SpecError> {
        self.files += 1;
        if nested >= NESTED_MAX || self.files > FILES_MAX {
            return Err(place.error("source", format!("{name}: too many files inside one another")));
        }
        let path = place.beside(name, self.top);
        let text = (self.read)(&path).map_err(|error| place.error("source", format!("{path}: {error}")))?;
        self.run(&text, &path, nested + 1)
    }
}

enum Piece<'t> {
    Word(&'t str),
    Mark(char),
}

/// Takes the next piece off a line; a comment ends it. A `#` inside a word belongs to the word.
fn next_piece<'t>(rest: &mut &'t str) -> Option<Piece<'t>> {
    let text = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\0');
    let first = text.chars().next().filter(|c| *c != '#')?;
    if is_mark(first) {
        *rest = &text[1..];
        return Some(Piece::Mark(first));
    }
    let end = text.find(|c: char| c.is_ascii_whitespace() || is_mark(c)).unwrap_or(text.len());
    *rest = &text[end..];
    Some(Piece::Word(&text[..end]))
}

fn is_mark(c: char) -> bool {
    matches!(c, '{' | '}' | '[' | ']' | ',' | '=' | ';' | ':' | '?')
}

/// A word is a number if all of it parses as one.
fn classify(word: &str) -> Token {
    if word == ".." {
        return Token::Range;
    }
    if let Ok(number) = word.parse::<i64>() {
        return Token::Int(number);
    }
    let (sign, digits) = word.strip_prefix('-').map_or((1, word), |digits| (-1, digits));
    if let Some(number) = digits.strip_prefix("0x").and_then(|hex| i64::from_str_radix(hex, 16).ok()) {
        return Token::Int(sign * number);
    }
    // Rust also parses `inf` and `nan`, which are words here.
    if word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
        && let Ok(number) = word.parse::<f64>()
        && number.is_finite()
    {
        return Token::Float(number);
    }
    Token::Word(word.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<Token>, SpecError> {
        let mut read = |name: &str| match name {
            "a/b.model" => Ok("inner source c.seek # gone".to_string()),
            "a/c.seek" => Ok("deep".to_string()),
            "self" => Ok("source self".to_string()),
            "twice" => Ok("source twice source twice".to_string()),
            _ => Err("not there".to_string()),
        };
        let mut lexer = Lexer::new("top.parv", &mut read);
        lexer.run(text, "top.parv", 0)?;
        Ok(lexer.tokens.into_iter().map(|(token, _)| token).collect())
    }

    #[test]
    fn lexer_separates_numbers_from_words() {
        let word = |w: &str| Token::Word(w.to_string());
        let met = tokens("-7 0x1F 1.5 2e3 -0.25 2nd 3disks over. inf nan - a#b #gone\n=")
            .expect("these are tokens");
        let want = [
            Token::Int(-7),
            Token::Int(31),
            Token::Float(1.5),
            Token::Float(2000.0),
            Token::Float(-0.25),
            word("2nd"),
            word("3disks"),
            word("over."),
            word("inf"),
            word("nan"),
            word("-"),
            word("a#b"),
            Token::Mark('='),
        ];
        assert_eq!(met, want);
    }

    #[test]
    fn sourced_path_is_relative_to_the_sourcing_file() {
        let met = tokens("x source a/b.model y").expect("both files are there");
        let words: Vec<String> = met.iter().map(Token::show).collect();
        assert_eq!(words, ["`x`", "`inner`", "`deep`", "`y`"]);
    }

    #[test]
    fn file_that_sources_itself_is_rejected() {
        for text in ["source self", "source twice"] {
            let error = tokens(text).expect_err("it never ends");
            assert!(error.message.contains("too many files"), "{error}");
        }
    }

    #[test]
    fn missing_sourced_file_is_rejected_with_its_line() {
        let error = tokens("a\nb source gone.model").expect_err("it is not there");
        assert_eq!(error.to_string(), "top.parv:2: source: gone.model: not there");
        assert!(tokens("source").is_err());
        assert!(tokens("source {").is_err());
    }
}
