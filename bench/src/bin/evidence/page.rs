//! Tables between two comments of a page.

const END: &str = "<!-- end of evidence -->\n";

/// Where the table of this name begins and ends.
fn bounds(text: &str, name: &str) -> Result<(usize, usize), String> {
    let start = format!("<!-- evidence: {name} -->\n");
    let begin = text.find(&start).ok_or_else(|| format!("the page has no `{}`", start.trim_end()))?;
    let begin = begin + start.len();
    let length =
        text[begin..].find(END).ok_or_else(|| format!("{name}: the page has no `{}`", END.trim_end()))?;
    Ok((begin, begin + length))
}

/// The table of this name, with the line below it.
#[cfg(test)]
pub(crate) fn table<'a>(text: &'a str, name: &str) -> Result<&'a str, String> {
    let (begin, end) = bounds(text, name)?;
    Ok(&text[begin..end])
}

/// The page with another table of this name.
///
/// *Errors:* the page has no such table.
pub(crate) fn with_table(text: &str, name: &str, table: &str) -> Result<String, String> {
    let (begin, end) = bounds(text, name)?;
    Ok(format!("{}{table}{}", &text[..begin], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "a\n<!-- evidence: x -->\nold\n<!-- end of evidence -->\nb\n";

    #[test]
    fn only_the_named_table_is_replaced() {
        let page = with_table(PAGE, "x", "new\n").expect("the page has it");
        assert_eq!(page, "a\n<!-- evidence: x -->\nnew\n<!-- end of evidence -->\nb\n");
        assert_eq!(table(&page, "x"), Ok("new\n"));
    }

    #[test]
    fn absent_table_is_an_error_that_names_it() {
        let error = with_table(PAGE, "y", "new\n").expect_err("the page has only x");
        assert_eq!(error, "the page has no `<!-- evidence: y -->`");
    }
}
