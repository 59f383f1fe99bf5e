//! Files do not import each other in a circle, so that each can be read after those that it imports.

use headstack_tidy::{Source, root, scan, sources, without_tests};
use std::collections::{BTreeMap, BTreeSet};

/// A registry lists its entries and is imported by them: crate and file. A circle through it is allowed.
const REGISTRIES: &[(&str, &str)] =
    &[("policy", "order/built_in"), ("studies", "study"), ("workload", "fio/options")];

/// A module's path below its crate's root: `order/sptf`; the root's is empty.
type Module = Vec<String>;

#[test]
fn files_import_each_other_in_no_circle() {
    let mut crates: BTreeMap<String, BTreeMap<Module, String>> = BTreeMap::new();
    for source in sources().iter().filter(|source| source.path.starts_with(root().join("crates"))) {
        let modules = crates.entry(source.crate_name().to_string()).or_default();
        modules.insert(module(source), source.text.clone());
    }
    let mut circles = Vec::new();
    for (name, modules) in &crates {
        for circle in circles_of(modules) {
            let is_registry = REGISTRIES.iter().any(|(of, file)| of == name && circle.contains(*file));
            if !is_registry {
                circles.push(format!("{name}: {}", circle.into_iter().collect::<Vec<_>>().join(", ")));
            }
        }
    }
    assert!(crates.len() > 10, "only {} crates met", crates.len());
    assert_eq!(circles, Vec::<String>::new());
}

/// A crate's root declares modules and exports their items. If it defined what they use, it would be above and below them at once.
#[test]
fn no_module_uses_what_the_root_of_its_crate_defines() {
    let program = sources();
    let mut arrows = Vec::new();
    for base in program.iter().filter(|source| module(source).is_empty()) {
        let defined = definitions(&base.text);
        for source in program.iter().filter(|source| source.crate_name() == base.crate_name()) {
            let module = module(source);
            let upward = paths(&source.text).into_iter().filter(|path| {
                let name = path.strip_prefix("crate::").or_else(|| path.strip_prefix("super::"));
                let is_near = path.starts_with("crate") || module.len() == 1;
                let name = name.and_then(|rest| scan::identifiers(rest).next());
                is_near && !module.is_empty() && name.is_some_and(|name| defined.contains(name))
            });
            arrows.extend(upward.map(|path| format!("{}: {path}", source.path.display())));
        }
    }
    assert_eq!(arrows, Vec::<String>::new(), "move the item into a module, and export it from the root");
}

/// Names of the items that a file defines outside of modules.
fn definitions(text: &str) -> BTreeSet<String> {
    const KINDS: [&str; 7] = ["struct", "enum", "trait", "fn", "const", "static", "type"];
    let lines = scan::lines(without_tests(text));
    let items = lines.iter().filter(|line| !line.code.starts_with(' '));
    let names = items.flat_map(|line| KINDS.iter().filter_map(|kind| scan::declared(&line.code, kind)));
    names.map(str::to_string).collect()
}

/// Paths into the own crate: imported ones, one by one, and those within the code.
fn paths(text: &str) -> Vec<String> {
    let code: String = scan::lines(without_tests(text)).into_iter().map(|line| line.code + "\n").collect();
    let inside = code.match_indices("crate::").map(|(index, _)| code[index..].chars().take(60).collect());
    use_statements(&code).flat_map(|statement| expanded(statement.trim())).chain(inside).collect()
}

fn module(source: &Source) -> Module {
    let inside = source.path.strip_prefix(root().join("crates")).expect("the file is a crate's");
    let words: Vec<String> = inside.iter().skip(2).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut module: Module = words.iter().map(|word| word.trim_end_matches(".rs").to_string()).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// The sets of modules that reach each other by imports.
fn circles_of(modules: &BTreeMap<Module, String>) -> Vec<BTreeSet<String>> {
    let imports: BTreeMap<&Module, BTreeSet<&Module>> =
        modules.iter().map(|(module, text)| (module, imported(module, text, modules))).collect();
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        modules.keys().map(|module| (module, reachable(module, &imports))).collect();
    let mut circles = BTreeSet::new();
    for (module, met) in reach.iter().filter(|(module, met)| met.contains(*module)) {
        let circle: BTreeSet<String> = met
            .iter()
            .filter(|other| reach[**other].contains(*module))
            .map(|other| other.join("/"))
            .collect();
        circles.insert(circle);
    }
    circles.into_iter().collect()
}

/// The modules that a module imports, and those that these import, and so on.
fn reachable<'a>(
    from: &'a Module,
    imports: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
) -> BTreeSet<&'a Module> {
    let (mut met, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(module) = waiting.pop() {
        waiting.extend(imports[module].iter().copied().filter(|next| met.insert(*next)));
    }
    met
}

/// The modules of the same crate that a file imports from. Names that it only exports again are not counted.
fn imported<'a>(module: &Module, text: &str, modules: &'a BTreeMap<Module, String>) -> BTreeSet<&'a Module> {
    let program = text.split("#[cfg(test)]").next().unwrap_or_default();
    let paths = use_statements(program).flat_map(|statement| expanded(statement.trim()));
    let targets = paths.filter_map(|path| target(module, &path, modules));
    targets.filter(|target| *target != module).collect()
}

/// What a file's statements `use` name.
fn use_statements(program: &str) -> impl Iterator<Item = String> {
    program.split(';').filter_map(|part| {
        let start =
            part.rfind("\nuse ").map(|index| index + 5).or_else(|| part.strip_prefix("use ").map(|_| 4));
        start.map(|start| part[start..].replace('\n', " "))
    })
}

/// The single paths of `a::{b, c::{d, e}}`.
fn expanded(path: &str) -> Vec<String> {
    let (Some(open), Some(close)) = (path.find('{'), path.rfind('}')) else {
        return vec![path.split(" as ").next().unwrap_or_default().trim().to_string()];
    };
    let (prefix, mut depth, mut items) = (&path[..open], 0, vec![String::new()]);
    for letter in path[open + 1..close].chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match letter {
            ',' if depth == 0 => items.push(String::new()),
            _ => items.last_mut().expect("there is an item").push(letter),
        }
    }
    let items = items.iter().map(|item| item.trim()).filter(|item| !item.is_empty());
    items.flat_map(expanded).map(|rest| format!("{}{rest}", prefix.trim())).collect()
}

/// The module of the same crate that a path names, or an item of it.
fn target<'a>(module: &Module, path: &str, modules: &'a BTreeMap<Module, String>) -> Option<&'a Module> {
    let mut words = path.split("::").peekable();
    let mut place = match words.next()? {
        "crate" => Vec::new(),
        "self" => module.clone(),
        "super" => module[..module.len().checked_sub(1)?].to_vec(),
        _ => return None,
    };
    while words.next_if_eq(&"super").is_some() {
        place.pop();
    }
    place.extend(words.map(str::to_string));
    let prefixes = (0..=place.len()).rev().map(|length| place[..length].to_vec());
    prefixes.filter_map(|prefix| modules.get_key_value(&prefix)).map(|(module, _)| module).next()
}

#[test]
fn nested_import_lists_are_expanded() {
    assert_eq!(expanded("super::{a::{B, C}, d as e}"), ["super::a::B", "super::a::C", "super::d"]);
}

#[test]
fn definitions_and_paths_of_a_file_are_found() {
    let root = "mod a;\npub use a::Shape;\npub(crate) trait Load {\n    fn poll(&self);\n}\n";
    assert_eq!(definitions(root), ["Load"].map(str::to_string).into());
    let module = "use crate::{Load, a};\nfn f(x: crate::Load) {}\n// crate::Other\n";
    let found = paths(module);
    assert_eq!(found[..2], ["crate::Load", "crate::a"].map(str::to_string));
    assert!(found.iter().any(|path| path.starts_with("crate::Load) {}")), "{found:?}");
    assert!(!found.iter().any(|path| path.contains("Other")), "{found:?}");
}
