//! A test is named by the behaviour that holds: its name is no question and no order.

use headstack_tidy::{all_code, scan};

const QUESTIONS: &[&str] = &[
    "is", "are", "was", "were", "do", "does", "did", "has", "have", "can", "may", "will", "must", "should",
    "what", "how", "which", "when", "where", "who", "why",
];

#[test]
fn no_test_name_begins_like_a_question() {
    let mut met = 0;
    for code in all_code() {
        for test in scan::functions(&code.lines).iter().filter(|function| function.is_test) {
            let first = test.name.split('_').next().unwrap_or_default();
            let place = format!("{}:{}", code.path.display(), test.first + 1);
            assert!(!QUESTIONS.contains(&first), "{place}: {} asks; say what holds", test.name);
            met += 1;
        }
    }
    assert!(met > 1_000, "only {met} tests met");
}
