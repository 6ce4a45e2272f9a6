//! Tests of the page.

use std::time::Duration;

use clap::Parser;

use super::*;
use crate::verdict::Check;

fn report(broken: Vec<String>) -> Report {
    Report {
        arguments: Arguments::parse_from(["milepost-load", "--scenario", "worker-killed"]),
        began_at: Timestamp::UNIX_EPOCH,
        phases: Phases { length: Duration::from_secs(3) },
        jobs: 7,
        checks: vec![Check { rule: "Every job has ended", checked: 7, broken }],
        recovery: Recovery { seconds: vec![2.5, 3.5, 4.25] },
        timeline: Timeline {
            seconds: vec![Span { seconds: 1.0, creates: 5, ..Span::default() }; 4],
            phases: vec![Span { seconds: 1.0, creates: 5, ..Span::default() }; 3],
            settled: Duration::from_secs(1),
        },
        kills: vec![1.0],
    }
}

#[test]
fn a_page_needs_no_script_and_no_other_file() {
    let page = report(Vec::new()).page().unwrap();
    for absent in ["<script", "<link", "<img", "url(", "@import"] {
        assert!(!page.contains(absent), "{absent}");
    }
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("width=device-width"), "{page}");
    assert_eq!(page.matches("<svg").count(), 5);
}

#[test]
fn a_page_shows_the_verdict_and_the_recovery() {
    let page = report(Vec::new()).page().unwrap();
    assert!(page.contains("verdict passed") && !page.contains("verdict failed"), "{page}");
    assert!(page.contains("p50 lease + 0.50 s, p99 lease + 1.25 s, maximum lease + 1.25 s"), "{page}");
}

#[test]
fn a_page_of_a_broken_rule_shows_its_cases_as_text() {
    let page = report(vec!["job <b>7</b> is missing".to_owned()]).page().unwrap();
    assert!(
        page.contains("verdict failed") && page.contains("is missing") && !page.contains("<b>7"),
        "{page}"
    );
}
