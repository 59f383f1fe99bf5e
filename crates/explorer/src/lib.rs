//! *What happens on the platter?* The explorer's page: one HTML file that contains the simulator and runs an experiment in the browser.
#![doc = include_str!("../README.md")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The simulator for WebAssembly, packed by gzip; empty where it was not built.
static MODULE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/module.wasm.gz"));

static TEMPLATE: &str = include_str!("../web/page.html");
static STYLE: &str = include_str!("../web/page.css");
/// The scripts of the worker, which runs the simulator.
static WORKER: [&str; 2] = [include_str!("../web/model.js"), include_str!("../web/worker.js")];
/// The scripts of the page, which draw and handle the controls.
static SCRIPTS: [&str; 7] = [
    include_str!("../web/draw.js"),
    include_str!("../web/words.js"),
    include_str!("../web/node.js"),
    include_str!("../web/zones.js"),
    include_str!("../web/panels.js"),
    include_str!("../web/live.js"),
    include_str!("../web/page.js"),
];

/// The simulator for WebAssembly was not built into this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingModule;

impl std::fmt::Display for MissingModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "this program was built without the simulator for browsers: run `rustup target add wasm32-unknown-unknown`, then \
             `make install` in the repository",
        )
    }
}

impl std::error::Error for MissingModule {}

/// The page that runs an experiment. `experiment` is its JSON (`headstack_explorer_wasm::PageExperiment`), `version` that of the program.
///
/// *Errors:* the program was built without the simulator for WebAssembly.
pub fn page(title: &str, experiment: &str, version: &str) -> Result<String, MissingModule> {
    if MODULE.is_empty() {
        return Err(MissingModule);
    }
    Ok(filled_page(&PageParts {
        title,
        experiment,
        version,
        module: &STANDARD.encode(MODULE),
        connect: "'none'",
    }))
}

/// The page that shows running disks. It contains no simulator and gets events from the server that it was loaded from. `disks` is a JSON
/// array with an object for each disk: its `name`, the path of its `events`, and the descriptions of its panels as `sides`
/// (`headstack_explorer_wasm::describe_running`).
pub fn live_page(title: &str, disks: &str, version: &str) -> String {
    let experiment = format!("{{\"live\":{disks}}}");
    filled_page(&PageParts { title, experiment: &experiment, version, module: "", connect: "'self'" })
}

/// The values that differ from page to page.
struct PageParts<'a> {
    title: &'a str,
    experiment: &'a str,
    version: &'a str,
    module: &'a str,
    connect: &'a str,
}

fn filled_page(parts: &PageParts<'_>) -> String {
    let values = [
        ("{{connect}}", parts.connect.to_string()),
        ("{{version}}", escaped(parts.version)),
        ("{{title}}", escaped(parts.title)),
        ("{{style}}", STYLE.to_string()),
        // A `<` in the text could end the script element that holds it.
        ("{{experiment}}", parts.experiment.replace('<', "\\u003c")),
        ("{{module}}", parts.module.to_string()),
        ("{{worker}}", WORKER.concat()),
        ("{{script}}", SCRIPTS.concat()),
    ];
    filled(TEMPLATE, &values)
}

/// The template with each name replaced by its value. Names inside a value are not replaced.
fn filled(template: &str, values: &[(&str, String)]) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some(start) = rest.find("{{") {
        let (before, from) = rest.split_at(start);
        page.push_str(before);
        let value = values.iter().find(|(name, _)| from.starts_with(name));
        let (name, value) = value.expect("the template has only these names");
        page.push_str(value);
        rest = &from[name.len()..];
    }
    page.push_str(rest);
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_markup_do_not_end_their_element() {
        let Ok(page) = page("</title><script>", r#"{"rig":"</script>{{module}}"}"#, "1") else { return };
        assert!(page.contains("<title>&lt;/title&gt;&lt;script&gt; – Headstack explorer</title>"));
        assert!(page.contains(r#"{"rig":"\u003c/script>{{module}}"}"#));
        assert_eq!(page.matches("</script>").count(), 4, "experiment, module, worker, script");
    }

    #[test]
    fn page_with_the_simulator_stays_below_four_megabytes() {
        let Ok(page) = page("a", "{}", "1") else { return };
        assert!(page.len() < 4_000_000, "{} bytes", page.len());
        assert!(page.len() > 1_000_000, "the module is in it");
    }

    #[test]
    fn page_loads_nothing_from_a_network() {
        for text in WORKER.iter().chain(&SCRIPTS).chain([&TEMPLATE, &STYLE]) {
            for word in ["http://", "https://", "fetch(", "import(", "XMLHttpRequest", "@import", "url("] {
                assert!(!text.contains(word), "{word}");
            }
        }
        assert!(TEMPLATE.contains("default-src 'none'") && TEMPLATE.contains("connect-src {{connect}}"));
    }

    #[test]
    fn no_script_exceeds_500_lines_or_ends_its_element() {
        for text in WORKER.iter().chain(&SCRIPTS) {
            assert!(text.starts_with("// @ts-check\n") && text.lines().count() <= 500);
            assert!(!text.contains("</script"));
        }
    }
}
