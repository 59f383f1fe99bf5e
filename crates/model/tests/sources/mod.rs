//! The rule that each number of a drive file has a comment which names its source.

/// The lines of a drive file that have a number without a source, or with a source that is not listed.
///
/// A source is the first word of a comment. The comment is behind the number, on the line that opens the number's array, on the heading of
/// its table, or on separate lines directly above one of these. The source must be a key of `[sources]`, `derived` or `assumption`.
pub(crate) fn unsourced(text: &str) -> Vec<String> {
    let mut sources = source_keys(text);
    sources.extend(["derived", "assumption"]);
    let names_source = |comment: &str| {
        let word = comment.split_whitespace().next().unwrap_or("");
        sources.contains(&word.trim_end_matches([':', ',', ';']))
    };
    let mut wrong = Vec::new();
    let (mut in_sources, mut table_sourced, mut array_sourced) = (false, false, false);
    let (mut depth, mut above) = (0i32, None);
    for (index, line) in text.lines().enumerate() {
        let (code, comment) = split_comment(line);
        let code = code.trim();
        if code.is_empty() {
            // The first line of a comment names the source. The next lines may give details.
            above = comment.map(|comment| above.unwrap_or(false) || names_source(comment));
            continue;
        }
        let sourced = comment.is_some_and(names_source) || above.take().unwrap_or(false);
        if depth == 0 && code.starts_with('[') {
            (in_sources, table_sourced) = (code == "[sources]", sourced);
            continue;
        }
        let value = if depth == 0 { code.split_once('=').map_or("", |(_, value)| value) } else { code };
        if depth == 0 {
            array_sourced = sourced || table_sourced;
        }
        if !in_sources && numeric(value) && !sourced && !array_sourced {
            wrong.push(format!("{}: {line}", index + 1));
        }
        depth += brackets(value);
    }
    wrong
}

/// The keys of `[sources]`.
fn source_keys(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| *line != "[sources]").skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|l| l.split_once('='))
        .map(|(key, _)| key.trim())
        .collect()
}

/// Splits a line at the `#` that begins a comment.
fn split_comment(line: &str) -> (&str, Option<&str>) {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return (&line[..at], Some(&line[at + 1..])),
            _ => {}
        }
    }
    (line, None)
}

/// Whether a value has a number outside of its strings.
fn numeric(value: &str) -> bool {
    let plain: String = value.split('"').step_by(2).collect();
    plain
        .split([',', '[', ']', '{', '}', '=', ' '])
        .any(|word| word.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit()))
}

fn brackets(value: &str) -> i32 {
    let plain: String = value.split('"').step_by(2).collect();
    plain.chars().map(|c| i32::from(matches!(c, '[' | '{')) - i32::from(matches!(c, ']' | '}'))).sum()
}
