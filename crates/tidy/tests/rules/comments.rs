//! A comment's lines can be read next to the code.

use headstack_tidy::ratchet::{Counts, check, count};
use headstack_tidy::sources;

const LONGEST_LINE: usize = 150;

#[test]
fn lines_of_comments_have_at_most_150_characters() {
    let mut found = Counts::new();
    for source in sources() {
        let is_comment = |line: &&str| line.trim_start().starts_with("//");
        for line in source.text.lines().filter(is_comment) {
            if line.chars().count() > LONGEST_LINE {
                count(&mut found, source.crate_name(), "lines over 150 characters");
            }
        }
    }
    check("long lines of comments", &found);
}
