//! Tests of searches by fields without an index.

use serde_json::json;

use crate::browser::Console;
use crate::support::{Place, on_each_store};

on_each_store! {
    a_search_goes_on_by_itself_until_it_finds_something_or_is_stopped,
}

/// More jobs than a single page request searches.
const JOBS: usize = 40_000;

/// A script that delays all responses to the page until the test releases them.
const GATE: &str = "{ const [real, open] = [fetch, new Promise((open) => { window.letGo = open; })];
                     window.fetch = async (...what) => { await open; return real(...what); }; }";

fn a_search_goes_on_by_itself_until_it_finds_something_or_is_stopped(place: Place) {
    place.write("many.jsonl", format!("{{\"no\": 17}}\n{}", "{\"no\": 1}\n".repeat(JOBS)));
    place.run(&["enqueue", "mail", "--from", "many.jsonl"]).ok();
    let console = Console::of(place);
    let browser = &console.browser;
    console.open("/jobs?payload=no%3D17");
    console.mark_page();
    browser.until("the oldest job is found", "document.querySelectorAll('main [data-row]').length === 1");
    assert_eq!(browser.read("stretch !== null"), true, "not in the first part of the search");
    assert_eq!(browser.read("location.search"), "?payload=no%3D17", "the address contains the search");
    assert_eq!(browser.count("[data-looks-on], [data-does=rest]"), 0, "the search has ended");
    console.was_not_loaded_anew();

    // The search must not finish before it is stopped.
    let gate = browser.command("Page.addScriptToEvaluateOnNewDocument", json!({ "source": GATE }));
    console.open("/jobs?payload=no%3D18");
    let id = json!({ "identifier": gate["identifier"] });
    browser.command("Page.removeScriptToEvaluateOnNewDocument", id);
    browser.until("it continues automatically", "stretch !== null");
    browser.click("[data-does=rest]");
    browser.read("window.letGo()");
    let (stopped_at, then) = (browser.read("stretch"), browser.read("Date.now()"));
    browser.until("the page is reloaded by its timer", &format!("!fetching && fetchedAt > {then} + 2000"));
    assert_eq!(browser.read("stretch"), stopped_at);
    browser.click("a[data-looks-on]");
    browser.until(
        "all jobs were searched",
        "document.querySelector('main .empty') && !document.querySelector('[data-looks-on]')",
    );
    browser.until_says("main .empty", "No further job");
    console.has_no_complaints();
}
