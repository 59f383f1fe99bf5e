//! Rules of docs/STYLE.md that a test can check: one file a rule, or a family of rules.

mod comments;
mod imports;
mod paragraphs;
mod sizes;
mod test_names;
mod type_names;
mod words;
