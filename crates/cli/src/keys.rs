//! Prints every key of a kind of file as Markdown, from its definition in the library. The pages in `docs/formats` come from here.

use crate::failure::Failure;
use headstack_model::spec::{KeyRule, unit};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write;
use textwrap::WordSplitter;

/// Writes a schema as a page of keys, or unchanged.
pub(crate) fn write(out: &mut dyn Write, schema: &Value, as_schema: bool) -> Result<(), Failure> {
    if as_schema {
        let text = serde_json::to_string_pretty(schema).expect("a schema is JSON");
        writeln!(out, "{text}")?;
    } else {
        write!(out, "{}", page(schema))?;
    }
    Ok(())
}

fn page(schema: &Value) -> String {
    let mut page = Page { schema, text: String::new(), reported: Vec::new() };
    page.heading("Top of the file");
    page.table(schema, "");
    page.text
}

const WIDTH: usize = 110;

struct Page<'a> {
    schema: &'a Value,
    text: String,
    /// Definitions already printed, each with its key.
    reported: Vec<(&'a str, String)>,
}

/// A named part of the schema, which several keys may share.
#[derive(Clone, Copy)]
struct Definition<'a> {
    reference: &'a str,
    value: &'a Value,
}

impl<'a> Page<'a> {
    fn heading(&mut self, heading: &str) {
        let _ = writeln!(self.text, "## {heading}\n");
    }

    /// The keys of the table at `path`, then the tables in it.
    fn table(&mut self, table: &'a Value, path: &str) {
        let properties = table["properties"].as_object().expect("a table has keys");
        let required = |key: &str| {
            let names = table["required"].as_array();
            names.is_some_and(|names| names.iter().any(|name| name.as_str() == Some(key)))
        };
        for (key, value) in properties {
            if self.subtable(value).is_none() {
                self.key(key, value, required(key));
            }
        }
        self.text.push('\n');
        for (key, value) in properties {
            if let Some((inner, is_list)) = self.subtable(value) {
                let name = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                self.heading(&if is_list { format!("`[[{name}]]`") } else { format!("`[{name}]`") });
                self.inner_table(inner, words(value, "description"), &name);
            }
        }
    }

    /// Prints the table at `path`, with the comment of its key and the comment of its type.
    fn inner_table(&mut self, inner: Definition<'a>, said: &str, path: &str) {
        if path.contains('.') {
            self.paragraphs(said);
            self.text.push('\n');
        }
        if let Some((_, first)) = self.reported.iter().find(|(known, _)| *known == inner.reference) {
            let _ = writeln!(self.text, "Keys as in `[{first}]`.\n");
            return;
        }
        self.reported.push((inner.reference, path.to_string()));
        let own = words(inner.value, "description");
        // The heading already names the table.
        self.paragraphs(&capitalized(own.strip_prefix(&format!("`[{path}]`: ")).unwrap_or(own)));
        self.text.push('\n');
        self.table(inner.value, path);
    }

    /// The table that a key holds, and whether it holds a list of them.
    fn subtable(&self, value: &'a Value) -> Option<(Definition<'a>, bool)> {
        let (inner, is_list) = match value.get("items") {
            Some(items) => (self.definition(items), true),
            None => (self.definition(value), false),
        };
        inner.filter(|inner| inner.value.get("properties").is_some()).map(|inner| (inner, is_list))
    }

    /// The target of a reference. The reference may be one of two choices, where the other is null.
    fn definition(&self, value: &'a Value) -> Option<Definition<'a>> {
        let choices = value.get("anyOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let reference =
            std::iter::once(value).chain(choices).find_map(|value| value.get("$ref"))?.as_str()?;
        let value = self.schema.pointer(reference.strip_prefix('#')?)?;
        Some(Definition { reference, value })
    }

    fn key(&mut self, key: &str, value: &'a Value, required: bool) {
        let mut about = vec![self.kind(value)];
        let KeyRule { number, length } = KeyRule::from_schema(key, value);
        about.push(number.map_or_else(|| unit(key, value).to_string(), |range| range.to_string()));
        about.extend(length.map(|range| range.to_string()));
        about.push(match (required, value.get("default")) {
            (true, _) => "required".to_string(),
            (false, Some(default)) if !default.is_null() => format!("default `{default}`"),
            (false, _) => "optional".to_string(),
        });
        about.retain(|part| !part.is_empty());
        let mut said = words(value, "description").split("\n\n");
        let summary = said.next().unwrap_or_default();
        self.item(0, &format!("`{key}` ({}): {summary}", about.join(", ")));
        for more in said {
            self.item(1, more);
        }
        if let Some(parts) = self.parts(value) {
            self.choices(key, parts);
        }
    }

    /// The words that a key may hold, or the parts of its value.
    fn choices(&mut self, key: &str, parts: Definition<'a>) {
        if let Some((_, first)) = self.reported.iter().find(|(known, _)| *known == parts.reference) {
            self.item(1, &format!("Words as for `{first}`."));
            return;
        }
        self.reported.push((parts.reference, key.to_string()));
        let Some(choices) = parts.value["oneOf"].as_array() else {
            return self.item(1, words(parts.value, "description"));
        };
        for choice in choices {
            self.item(1, &format!("`{}`: {}", choice["const"], words(choice, "description")));
        }
    }

    /// The definition of the parts of a key's value, inside any lists.
    fn parts(&self, value: &'a Value) -> Option<Definition<'a>> {
        self.definition(value).or_else(|| self.parts(value.get("items")?))
    }

    fn kind(&self, value: &'a Value) -> String {
        if let Some(definition) = self.definition(value) {
            let value = definition.value;
            return if value.get("oneOf").is_some() { "word".to_string() } else { self.kind(value) };
        }
        if let Some(items) = value["prefixItems"].as_array() {
            let kinds: Vec<String> = items.iter().map(|item| self.kind(item)).collect();
            return format!("[{}]", kinds.join(", "));
        }
        let name = match &value["type"] {
            Value::Array(names) => names[0].as_str(),
            name => name.as_str(),
        };
        match name {
            Some("integer") => "whole number".to_string(),
            Some("string") => "text".to_string(),
            Some("boolean") => "true or false".to_string(),
            Some("object") if value["additionalProperties"] == true => "table".to_string(),
            Some("object") if value["additionalProperties"]["type"] == "array" => {
                "table of lists".to_string()
            }
            Some("object") => "table of texts".to_string(),
            Some("array") => format!("list of {}", self.kind(&value["items"])),
            _ => "number".to_string(),
        }
    }

    fn item(&mut self, depth: usize, text: &str) {
        let indent = "  ".repeat(depth);
        self.fill(text, &format!("{indent}- "), &format!("{indent}  "));
    }

    /// Paragraphs of a comment; code stays as it is.
    fn paragraphs(&mut self, text: &str) {
        for (index, part) in text.split("```").enumerate() {
            if index % 2 == 1 {
                let _ = writeln!(self.text, "\n```{part}```");
                continue;
            }
            for (index, paragraph) in part.trim().split("\n\n").enumerate() {
                self.text.push_str(if index > 0 { "\n" } else { "" });
                self.fill(paragraph, "", "");
            }
        }
    }

    fn fill(&mut self, text: &str, first: &str, later: &str) {
        if text.is_empty() {
            return;
        }
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let options =
            textwrap::Options::new(WIDTH).initial_indent(first).subsequent_indent(later).break_words(false);
        let _ = writeln!(
            self.text,
            "{}",
            textwrap::fill(&flat, options.word_splitter(WordSplitter::NoHyphenation))
        );
    }
}

fn words<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
