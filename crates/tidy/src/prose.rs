//! Splits Markdown into paragraphs without code, and counts phrases in text.

/// A paragraph, or an item of a list.
pub struct Paragraph {
    /// The line on which it begins, from 1.
    pub first_line: usize,
    /// Its text in one line, without code.
    pub text: String,
    /// Its lines.
    pub lines: usize,
    /// Its characters, code too.
    pub characters: usize,
}

/// The paragraphs of a Markdown page; a row of a table and a heading are one each. Code blocks are left out.
pub fn paragraphs(markdown: &str) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let (mut in_code, mut is_open) = (false, false);
    for (index, line) in markdown.lines().enumerate() {
        let text = line.trim();
        let is_fence = text.starts_with("```");
        in_code ^= is_fence;
        if in_code || is_fence || text.is_empty() {
            is_open = false;
            continue;
        }
        if !is_open || begins_item(text) {
            found.push(Paragraph { first_line: index + 1, text: String::new(), lines: 0, characters: 0 });
        }
        is_open = !text.starts_with(['#', '|']);
        if let Some(last) = found.last_mut() {
            last.text = format!("{} {}", last.text, without_code(text));
            last.lines += 1;
            last.characters += line.chars().count();
        }
    }
    found
}

fn begins_item(text: &str) -> bool {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    text.starts_with(['#', '|']) || text.starts_with("* ") || text.starts_with("- ") || {
        number.len() < text.len() && number.starts_with(". ")
    }
}

/// A line without the code in backquotes and without the targets of its links.
fn without_code(line: &str) -> String {
    let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("·");
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, rest| text + " " + rest.split_once(')').map_or("", |(_, rest)| rest))
}

/// The number of times that a phrase of one or more words occurs in a text.
pub fn occurrences(text: &str, phrase: &str) -> usize {
    let words = words(text);
    let phrase: Vec<_> = phrase.split(' ').collect();
    words.windows(phrase.len()).filter(|window| window.iter().zip(&phrase).all(|(a, b)| a == b)).count()
}

/// The words of a text in lower case. A punctuation mark counts as a word, so that no phrase extends across it.
pub fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in text.chars() {
        if c.is_alphabetic() {
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        } else {
            let mark = if c.is_whitespace() { String::new() } else { c.to_string() };
            words.extend([mark, String::new()]);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_end_at_punctuation_and_code() {
        assert_eq!(occurrences("At rest, at `x` rest, at\nrest: AT REST", "at rest"), 3);
        assert_eq!(paragraphs("it goes `x` on")[0].text, " it goes · on");
    }

    #[test]
    fn paragraphs_and_items_are_separated() {
        let page = "# A\none\ntwo [x](y.md)\n\n* a\n  b\n* c\n\n```\ncode\n```\n1. d\n| e |\n";
        let found = paragraphs(page);
        let lines: Vec<_> = found.iter().map(|p| (p.first_line, p.lines)).collect();
        assert_eq!(lines, [(1, 1), (2, 2), (5, 2), (7, 1), (12, 1), (13, 1)]);
        assert_eq!(found[1].text, " one two [x ");
    }
}
