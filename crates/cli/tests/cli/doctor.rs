//! `headstack doctor` on this machine, whatever it lacks.

use crate::common::{json, printed};

#[test]
fn doctor_succeeds_and_has_a_remedy_for_all_that_does_not_work() {
    let report = json(&["doctor", "--json"]);
    assert!(report["version"].is_string());
    let checks = report["checks"].as_array().expect("checks are a list");
    assert!(checks.len() >= 8, "{report}");
    let text = printed(&["doctor"]);
    for check in checks {
        let works = check["state"] == "works";
        assert_eq!(check["remedy"].is_null(), works, "{check}");
        assert!(text.contains(check["name"].as_str().expect("a name is text")), "{check} is not in {text}");
        assert!(
            check["remedy"].as_str().is_none_or(|remedy| text.contains(remedy)),
            "{check} is not in {text}"
        );
    }
}
