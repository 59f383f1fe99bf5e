//! `${NAME}` and fio's own keywords in values.
//!
//! As in fio, `${NAME}` is the environment's variable of that name, and `$pagesize`, `$mb_memory` and `$ncpus` are the machine's.
//! Their values are passed in, because this crate does not read the environment. A variable that is not set is an error, where fio
//! uses an empty text: the job would silently request something else.
//!
//! Not modelled: the arithmetic after a keyword (`8*$pagesize`), for which fio calls `bc`.

/// The value of a variable: for `${NAME}` by `NAME`, for a keyword such as `$ncpus` by that word.
pub type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];

pub(super) struct Filled {
    pub(super) text: String,
    /// The variables as written, with their values.
    pub(super) variables: Vec<(String, String)>,
}

/// The text with its variables expanded, and the list of them; `None` if it has none.
///
/// *Errors:* a variable that is not set.
pub(super) fn expand(text: &str, variables: &Variables<'_>) -> Result<Option<Filled>, String> {
    if !text.contains('$') {
        return Ok(None);
    }
    let mut met = Vec::new();
    let mut filled = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        filled.push_str(&rest[..start]);
        rest = &rest[start..];
        let (length, name) = match variable(rest)? {
            Some(found) => found,
            None => {
                filled.push('$');
                rest = &rest[1..];
                continue;
            }
        };
        let value = variables(name).ok_or_else(|| not_set(&rest[..length], name))?;
        filled.push_str(&value);
        met.push((rest[..length].to_string(), value));
        rest = &rest[length..];
    }
    filled.push_str(rest);
    Ok((!met.is_empty()).then_some(Filled { text: filled, variables: met }))
}

/// The length of the variable at the start of a text, and its name; `None` if the `$` belongs to something else, such as
/// `$jobname`.
fn variable(text: &str) -> Result<Option<(usize, &str)>, String> {
    if let Some(inner) = text.strip_prefix("${") {
        let end = inner.find('}').ok_or("`${` without its `}`")?;
        return Ok(Some((end + 3, &inner[..end])));
    }
    let keyword = KEYWORDS.into_iter().find(|word| text.starts_with(word));
    Ok(keyword.map(|word| (word.len(), &text[..word.len()])))
}

fn not_set(written: &str, name: &str) -> String {
    let written = super::error::show(written);
    if KEYWORDS.contains(&name) {
        return format!("`{written}` is not known here; write the number");
    }
    format!("`{written}`: the environment has no variable of that name; set it, or write the value")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        let variables = |name: &str| match name {
            "SIZE" => Some("10g".to_string()),
            "EMPTY" => Some(String::new()),
            "$ncpus" => Some("4".to_string()),
            _ => None,
        };
        expand(text, &variables).map(|found| found.map_or(text.to_string(), |filled| filled.text))
    }

    #[test]
    fn variables_and_keywords_are_expanded() {
        assert_eq!(expanded("${SIZE}"), Ok("10g".to_string()));
        assert_eq!(expanded("a${EMPTY}${SIZE}b"), Ok("a10gb".to_string()));
        assert_eq!(expanded("$ncpus"), Ok("4".to_string()));
        assert_eq!(expanded("$jobname.$jobnum"), Ok("$jobname.$jobnum".to_string()));
        assert_eq!(expanded("5$"), Ok("5$".to_string()));
    }

    #[test]
    fn unresolvable_variable_is_rejected() {
        assert!(expanded("${GONE}").is_err_and(|error| error.contains("no variable of that name")));
        assert!(expanded("${SIZE").is_err_and(|error| error.contains("without its `}`")));
        assert!(expanded("$pagesize").is_err_and(|error| error.contains("write the number")));
    }
}
