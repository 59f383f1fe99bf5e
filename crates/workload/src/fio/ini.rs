//! The syntax of a job file: sections, keys, comments, included files.
//!
//! As in fio: everything from a `;` or `#` on is a comment; a section whose name begins with `global` has defaults for the
//! sections after it; `include FILE` inserts the lines of that file, which has no sections of its own. The file is searched for by
//! the name as written, and then in the folder of the file that names it. Our own keys are in comments `#headstack: key=value`.

use std::io;
use std::rc::Rc;

use headstack_model::SpecError;

use super::error::{Place, show};

const NESTED_MAX: usize = 16;
/// Maximum number of files that a job file may include: files that include each other would otherwise never end.
const FILES_MAX: usize = 256;
/// Most bytes of one job file and its included files.
const BYTES_MAX: usize = 4 << 20;

pub(super) type Include<'a> = dyn FnMut(&str) -> io::Result<String> + 'a;

#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) entries: Vec<Entry>,
}

impl Section {
    /// Whether it has defaults and is not a job.
    pub(super) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: Option<String>,
    pub(super) place: Place,
    /// Whether it is a key of ours, in a comment.
    pub(super) own: bool,
}

pub(super) fn split(text: &str, name: &str, include: &mut Include<'_>) -> Result<Vec<Section>, SpecError> {
    let mut reader = SectionReader { include, sections: Vec::new(), files: 0, bytes: 0 };
    reader.run(text, &Rc::from(name), 0)?;
    Ok(reader.sections)
}

struct SectionReader<'a, 'b> {
    include: &'a mut Include<'b>,
    sections: Vec<Section>,
    files: usize,
    bytes: usize,
}

impl SectionReader<'_, '_> {
    fn run(&mut self, text: &str, file: &Rc<str>, nested: usize) -> Result<(), SpecError> {
        self.bytes += text.len();
        let mut place = Place { file: file.clone(), line: 1 };
        if self.bytes > BYTES_MAX {
            return Err(place.error("", format!("more than {BYTES_MAX} bytes with what it includes")));
        }
        // Some editors put a byte order mark before a text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (index, line) in text.lines().enumerate() {
            place.line = index + 1;
            self.line(line.trim(), &place, nested)?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str, place: &Place, nested: usize) -> Result<(), SpecError> {
        if let Some(own) = line.strip_prefix("#headstack:") {
            return self.entry(own.trim(), place, true);
        }
        let line = line.split([';', '#']).next().unwrap_or_default().trim_end();
        if line.is_empty() {
            return Ok(());
        }
        if line.starts_with('[') {
            return self.section(line, place, nested);
        }
        if let Some(name) = line.strip_prefix("include").filter(|name| name.starts_with([' ', '\t'])) {
            return self.include(name.trim(), place, nested);
        }
        self.entry(line, place, false)
    }

    fn section(&mut self, line: &str, place: &Place, nested: usize) -> Result<(), SpecError> {
        if nested > 0 {
            return Err(place.error("", format!("`{}`: an included file has no sections", show(line))));
        }
        let name = line.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(place.error("", format!("`{}`, where a section is `[name]`", show(line))));
        };
        let section = Section { name: name.to_string(), place: place.clone(), entries: Vec::new() };
        self.sections.push(section);
        Ok(())
    }

    fn entry(&mut self, text: &str, place: &Place, own: bool) -> Result<(), SpecError> {
        let (key, value) = match text.split_once('=') {
            // A blank before the value stays: fio skips it before numbers, and not before words.
            Some((key, value)) => (key.trim(), Some(value.to_string())),
            None => (text, None),
        };
        let Some(section) = self.sections.last_mut() else {
            return Err(place.error(key, "stands before the first [section]"));
        };
        section.entries.push(Entry { key: key.to_string(), value, place: place.clone(), own });
        Ok(())
    }

    fn include(&mut self, name: &str, place: &Place, nested: usize) -> Result<(), SpecError> {
        if self.sections.is_empty() {
            return Err(place.error("include", "stands before the first [section]"));
        }
        self.files += 1;
        if nested >= NESTED_MAX || self.files > FILES_MAX {
            return Err(
                place.error("include", format!("`{}`: too many files inside one another", show(name)))
            );
        }
        let mut path = name.to_string();
        let mut read = (self.include)(&path);
        if let (Err(_), Some((folder, _))) = (&read, place.file.rsplit_once('/')) {
            path = format!("{folder}/{name}");
            read = (self.include)(&path);
        }
        let text = read.map_err(|error| place.error("include", format!("`{}`: {error}", show(name))))?;
        self.run(&text, &Rc::from(path.as_str()), nested + 1)
    }
}
