//! axe-core finds nothing on any page.

use serde_json::Value;

use crate::browser::Console;
use crate::browser::pages::paths;
use crate::support::Place;

/// Runs axe-core, and returns each fault with the elements that have it.
const FAULTS: &str = "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.flatMap(
    (fault) => fault.nodes.map((node) => `${fault.id}: ${node.html.slice(0, 160)} (${node.failureSummary.slice(0, 300)})`)))";

#[test]
fn no_page_has_a_fault_that_axe_finds_in_either_theme() {
    let axe = std::env::var("MILEPOST_TEST_AXE").expect("run `scripts/services run cargo test`");
    let axe = std::fs::read_to_string(axe).unwrap();
    let place = Place::sqlite();
    let mut paths = paths(&place);
    paths.extend(["/reference", "/audit"].map(str::to_owned));
    let console = Console::of(place);
    let browser = &console.browser;
    console.open(&paths[0]);
    console.until_state("failed");
    let mut faults = Vec::new();
    for path in &paths {
        console.open(path);
        browser.read(&format!("(() => {{ {axe}\n}})()"));
        for theme in ["light", "dark"] {
            browser.read(&format!("document.documentElement.dataset.theme = {theme:?}"));
            let found: Value = browser.read(FAULTS);
            faults.extend(found.as_array().unwrap().iter().map(|fault| format!("{path}, {theme}: {fault}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
