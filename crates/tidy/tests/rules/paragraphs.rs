//! A paragraph of the guide has at most six lines.

use headstack_tidy::ratchet::{Counts, check, count};
use headstack_tidy::{entries, prose, read, root};

const MOST_LINES: usize = 6;

/// What counts as a line where lines are longer.
const LINE: usize = 130;

#[test]
fn paragraphs_of_the_guide_have_at_most_six_lines() {
    let mut found = Counts::new();
    let [guide, recipes] = ["docs/guide", "docs/guide/recipes"].map(|folder| entries(&root().join(folder)));
    let pages = guide.into_iter().chain(recipes).chain([root().join("README.md")]);
    for path in pages.filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        for paragraph in prose::paragraphs(&read(&path)).iter().filter(|it| !it.text.trim().starts_with('|'))
        {
            if paragraph.lines > MOST_LINES || paragraph.characters > MOST_LINES * LINE {
                println!("{}:{}: {} lines", path.display(), paragraph.first_line, paragraph.lines);
                count(&mut found, "documents", name);
            }
        }
    }
    check("paragraphs over six lines", &found);
}
