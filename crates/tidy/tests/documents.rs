//! The documents: their links lead somewhere, the table of crates is the manifest's, the README is short.

use headstack_tidy::{entries, pages, read, root};
use std::collections::BTreeSet;

/// Where the links of a page lead: what stands in the parentheses of `](…)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let anchor = |heading: &str| -> String {
        let kept = heading.to_lowercase();
        let kept = kept.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| anchor(line.trim_start_matches('#')))
        .collect()
}

#[test]
fn every_link_in_documents_has_a_target() {
    let mut met = 0;
    for page in pages() {
        let text = read(&page);
        for link in links(&text).filter(|link| !link.starts_with("https://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = page.parent().expect("a file lies in a folder");
            let target = if file.is_empty() { page.clone() } else { folder.join(file) };
            assert!(target.exists(), "{}: {link}", page.display());
            if !anchor.is_empty() {
                assert!(anchors(&read(&target)).contains(anchor), "{}: {link}", page.display());
            }
            met += 1;
        }
    }
    assert!(met > 20, "only {met} links met");
}

/// The crates named in the first column of the table of external crates.
fn described() -> BTreeSet<String> {
    let text = read(&root().join("docs/dependencies.md"));
    let table = text.split("# External crates").nth(1).expect("there is such a heading");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    rows.flat_map(|cell| cell.split([' ', ',', '`']))
        .filter(|name| !name.is_empty())
        .map(str::to_string)
        .collect()
}

#[test]
fn crate_table_matches_the_workspace_dependencies() {
    let manifest: toml::Table = read(&root().join("Cargo.toml")).parse().expect("a manifest is TOML");
    let all = manifest["workspace"]["dependencies"].as_table().expect("the workspace has dependencies");
    let is_ours = |name: &str| name == "headstack" || name.starts_with("headstack-");
    let used: BTreeSet<String> = all.keys().filter(|name| !is_ours(name)).cloned().collect();
    assert_eq!(used, described());
}

#[test]
fn readme_stays_below_130_lines() {
    assert!(read(&root().join("README.md")).lines().count() < 130);
}

/// The manifests of the crates that are published.
fn published() -> Vec<(String, toml::Table)> {
    let manifests = entries(&root().join("crates")).into_iter().map(|folder| folder.join("Cargo.toml"));
    let parsed = manifests.map(|path| read(&path).parse::<toml::Table>().expect("a manifest is TOML"));
    let named = parsed.map(|manifest| {
        let package = manifest["package"].as_table().expect("a package is a table").clone();
        (package["name"].as_str().expect("a name is text").to_string(), package)
    });
    named.filter(|(_, package)| package.get("publish").is_none()).collect()
}

#[test]
fn published_crates_say_what_they_are_and_hold_the_licence() {
    let published = published();
    assert!(published.len() > 10, "only {} published crates", published.len());
    for (name, package) in published {
        for key in ["description", "readme", "keywords", "categories", "license", "exclude"] {
            assert!(package.contains_key(key), "{name} has no {key}");
        }
        let keywords = package["keywords"].as_array().expect("keywords are a list");
        assert!(
            (1..=5).contains(&keywords.len()),
            "{name} has {} keywords, where 5 are allowed",
            keywords.len()
        );
        let folder = root().join("crates").join(name.strip_prefix("headstack-").unwrap_or(&name));
        for file in ["LICENSE", package["readme"].as_str().expect("a path is text")] {
            assert!(folder.join(file).exists(), "{name} has no {file}");
        }
    }
}

#[test]
fn workspace_crates_name_each_other_with_the_version_of_all() {
    let manifest: toml::Table = read(&root().join("Cargo.toml")).parse().expect("a manifest is TOML");
    let version = &manifest["workspace"]["package"]["version"];
    let all = manifest["workspace"]["dependencies"].as_table().expect("the workspace has dependencies");
    for (name, _) in published() {
        // Nothing depends on the command.
        let Some(used) = all.get(&name) else { continue };
        assert_eq!(used.get("version"), Some(version), "{name}");
    }
}
