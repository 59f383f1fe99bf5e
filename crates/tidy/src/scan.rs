//! Splits Rust source into code, comments and strings, line by line, and finds the functions in it.
//!
//! A scanner, not a parser: it knows comments, strings, character literals and braces, and nothing of macros or types.

/// One line of a source, split into code, comment and strings.
#[derive(Default)]
pub struct Line {
    /// The code, with `""` in place of each string.
    pub code: String,
    /// The text of its comments, without the slashes.
    pub comment: String,
    /// The text of its strings.
    pub strings: String,
}

/// A function of a source.
pub struct Function {
    /// Its name.
    pub name: String,
    /// Whether it has the attribute `#[test]`, inside `proptest!` included.
    pub is_test: bool,
    /// The index of its first line.
    pub first: usize,
    /// Number of lines from the one with its name to the one with its closing brace.
    pub lines: usize,
}

#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    /// With the depth of nesting.
    BlockComment(usize),
    String,
    /// With the number of hashes that must follow the closing quote.
    RawString(usize),
}

/// The lines of a source.
pub fn lines(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let (mut lines, mut line, mut state, mut at) = (Vec::new(), Line::default(), State::Code, 0);
    while at < chars.len() {
        if chars[at] == '\n' {
            lines.push(std::mem::take(&mut line));
            state = if matches!(state, State::LineComment) { State::Code } else { state };
            at += 1;
            continue;
        }
        let (next, length) = step(&chars[at..], state, &mut line);
        (state, at) = (next, at + length);
    }
    lines.push(line);
    lines
}

/// Reads the first token of `rest` into `line`. Returns the new state and the number of characters read.
fn step(rest: &[char], state: State, line: &mut Line) -> (State, usize) {
    let starts = |text: &str| text.chars().zip(rest).filter(|(a, b)| a == *b).count() == text.len();
    match state {
        State::Code if starts("//") => {
            (State::LineComment, rest.iter().take_while(|c| "/!".contains(**c)).count())
        }
        State::Code if starts("/*") => (State::BlockComment(1), 2),
        State::Code => code(rest, line),
        State::LineComment => (state, push(&mut line.comment, rest[0])),
        State::BlockComment(depth) if starts("*/") => {
            (if depth == 1 { State::Code } else { State::BlockComment(depth - 1) }, 2)
        }
        State::BlockComment(depth) if starts("/*") => (State::BlockComment(depth + 1), 2),
        State::BlockComment(_) => (state, push(&mut line.comment, rest[0])),
        State::String if rest[0] == '\\' && rest.get(1).is_some_and(|c| *c != '\n') => (state, 2),
        State::RawString(hashes) if starts(&format!("\"{}", "#".repeat(hashes))) => {
            line.strings.push(' ');
            (State::Code, 1 + hashes)
        }
        State::String if rest[0] == '"' => (State::Code, push(&mut line.strings, ' ')),
        State::String | State::RawString(_) => (state, push(&mut line.strings, rest[0])),
    }
}

fn code(rest: &[char], line: &mut Line) -> (State, usize) {
    let after_word = line.code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let prefix = rest.iter().take_while(|c| "rb".contains(**c)).count();
    let hashes = rest[prefix..].iter().take_while(|c| **c == '#').count();
    let is_quoted = rest.get(prefix + hashes) == Some(&'"');
    if !after_word && is_quoted && rest[..prefix].contains(&'r') {
        line.code.push_str("\"\"");
        return (State::RawString(hashes), prefix + hashes + 1);
    }
    match rest {
        ['"', ..] => {
            line.code.push_str("\"\"");
            (State::String, 1)
        }
        // A character literal. A quote without a second one behind it begins a lifetime.
        ['\'', '\\', _, tail @ ..] => {
            (State::Code, 4 + tail.iter().position(|c| *c == '\'').unwrap_or_default())
        }
        ['\'', _, '\'', ..] => (State::Code, 3),
        [first, ..] => (State::Code, push(&mut line.code, *first)),
        [] => (State::Code, 1),
    }
}

fn push(text: &mut String, c: char) -> usize {
    text.push(c);
    1
}

/// The identifiers of a piece of code.
pub fn identifiers(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

/// The words of an identifier, in lower case: split at underscores and before capitals.
pub fn words(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in identifier.chars() {
        if c == '_' || (c.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        after_lower = c.is_lowercase() || c.is_numeric();
        if let (true, Some(word)) = (c != '_', words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The name that an item with this keyword declares on a line. The keyword may be anywhere on the line.
pub fn declared<'a>(code: &'a str, keyword: &str) -> Option<&'a str> {
    let mut identifiers = identifiers(code).skip_while(|word| *word != keyword);
    identifiers.next().and(identifiers.next())
}

/// The functions of a source that have a body.
pub fn functions(lines: &[Line]) -> Vec<Function> {
    let mut found = Vec::new();
    let mut has_attribute = false;
    for (first, line) in lines.iter().enumerate() {
        has_attribute |= line.code.trim_start().starts_with("#[test]");
        let Some(name) = declared(&line.code, "fn") else { continue };
        let is_test = std::mem::take(&mut has_attribute);
        if let Some(lines) = body(&lines[first..]) {
            found.push(Function { name: name.to_string(), is_test, first, lines });
        }
    }
    found
}

/// The number of lines up to the brace that closes the first opening one; none if a semicolon comes before that.
pub fn body(lines: &[Line]) -> Option<usize> {
    let (mut depth, mut brackets) = (0_usize, 0_usize);
    for (index, line) in lines.iter().enumerate() {
        for c in line.code.chars() {
            match c {
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets = brackets.saturating_sub(1),
                ';' if depth == 0 && brackets == 0 => return None,
                '{' => depth += 1,
                '}' if depth == 1 => return Some(index + 1),
                '}' => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_comments_and_strings_are_separated() {
        let text = "let a = \"x // y\"; // why\nlet b = r#\"q\"z\"#; /* c */ f('\"', '\\'', 'a: &'b str);";
        let lines = lines(text);
        assert_eq!(lines[0].code, "let a = \"\"; ");
        assert_eq!(lines[0].comment, " why");
        assert_eq!(lines[0].strings, "x // y ");
        assert_eq!(lines[1].strings, "q\"z ");
        assert_eq!(lines[1].comment, " c ");
        assert!(lines[1].code.ends_with("f(, , 'a: &'b str);"), "{}", lines[1].code);
    }

    #[test]
    fn identifiers_are_split_into_words() {
        assert_eq!(words("LeftOpen2_at_manyURLs"), ["left", "open2", "at", "many", "urls"]);
    }

    #[test]
    fn functions_have_their_lengths() {
        let text = "trait A {\n fn none(&self);\n}\n#[test]\nfn two(a: [u8; 2]) {\n}\nfn one() {}";
        let found = functions(&lines(text));
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.is_test, f.first, f.lines)).collect();
        assert_eq!(found, [("two", true, 4, 2), ("one", false, 6, 1)]);
    }
}
