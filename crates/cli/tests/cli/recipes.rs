//! The recipes of the guide: each page's commands run as they are written there, print what is quoted, and support the page's answer.
//!
//! `HEADSTACK_UPDATE=1` brings quoted outputs and pictures up to date; the answers are then to be read again.

mod claims;
mod page;

use page::Page;

/// Every recipe, and no page without a test of its answer.
#[test]
fn every_recipe_has_a_page_an_entry_in_the_index_and_a_test() {
    let index = std::fs::read_to_string(page::guide().join("recipes.md")).expect("the index is there");
    let mut pages: Vec<String> = std::fs::read_dir(page::guide().join("recipes"))
        .expect("the folder is there")
        .filter_map(|entry| entry.expect("the folder can be listed").file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".md")?.to_string()))
        .collect();
    pages.sort();
    let mut tested = claims::ALL.to_vec();
    tested.sort_unstable();
    assert_eq!(pages, tested);
    for name in &pages {
        assert!(index.contains(&format!("](recipes/{name}.md)")), "the index does not link {name}");
    }
}

/// All parts of a page that a reader looks for.
#[test]
fn every_recipe_has_a_question_a_picture_an_answer_and_its_limits() {
    for name in claims::ALL {
        let page = Page::read(name);
        for heading in ["## Run it", "## Answer", "## What the model leaves out"] {
            assert_eq!(page.text.matches(&format!("\n{heading}\n")).count(), 1, "{name}: {heading}");
        }
        assert!(page.text.contains(&format!("]({name}.svg)")), "{name}: no picture");
        assert!(page.text.lines().next().is_some_and(|title| title.ends_with('?')), "{name}: no question");
    }
}
