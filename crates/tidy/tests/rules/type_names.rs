//! A type's name means one thing in the whole workspace.

use headstack_tidy::ratchet::{Counts, check};
use headstack_tidy::{program_code, scan};

/// Names of one idea that several crates and commands have each: an error of its own, the arguments of a command.
const ONE_IDEA: &[&str] = &["Error", "Args"];

#[test]
fn no_type_name_is_used_twice() {
    let mut found = Counts::new();
    for code in program_code() {
        // What a macro declares has the name of its argument.
        for line in code.lines.iter().filter(|line| !line.code.contains("struct $")) {
            // An indented `type` is a trait's associated type, which has the trait's name for it.
            let keywords = ["struct", "enum", "trait", "union"].into_iter();
            let alias = (!line.code.starts_with(' ')).then_some("type");
            let name = keywords.chain(alias).find_map(|keyword| scan::declared(&line.code, keyword));
            if let Some(name) = name.filter(|name| !ONE_IDEA.contains(name)) {
                *found.entry(("workspace".to_string(), name.to_string())).or_default() += 1;
            }
        }
    }
    assert!(found.len() > 500, "only {} types met", found.len());
    found.retain(|_, number| *number > 1);
    check("type name used twice", &found);
}
