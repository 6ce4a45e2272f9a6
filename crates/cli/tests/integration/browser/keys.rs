//! Tests of keyboard shortcuts and display settings.

use crate::browser::Console;
use crate::support::Place;

const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

#[test]
fn keys_lead_to_the_search_to_rows_and_to_pages() {
    let console = Console::of(Place::sqlite());
    let ids = console.place.enqueue_many(3);
    let browser = &console.browser;
    console.open("/jobs");
    browser.press("/");
    browser.until("the search has the focus", "document.activeElement.matches('[data-search]')");
    browser.press("gq?");
    browser.until("keys typed in the search do not navigate", "document.activeElement.value === 'gq?'");
    browser.press(ESCAPE);
    browser.until("the search is left", "document.activeElement === document.body");

    browser.press("?");
    browser.until("the list of keys is shown", "document.querySelector('#keys:popover-open') !== null");
    browser.press("?");
    browser.until("the list of keys is hidden", "document.querySelector('#keys:popover-open') === null");

    let at = |row: usize| format!("document.activeElement.getAttribute('href') === '/jobs/{}'", ids[row]);
    for (keys, row) in [("j", 0), ("j", 1), ("jj", 2), ("k", 1)] {
        browser.press(keys);
        browser.until(&format!("row {row} has the focus"), &at(row));
    }
    browser.press("x");
    let picked = format!("document.querySelector('input.pick:checked')?.value === '{}'", ids[1]);
    browser.until("the row is picked", &picked);
    browser.press(ENTER);
    let there = |path: &str| format!("location.pathname === '{path}' && document.readyState === 'complete'");
    browser.until("the row is opened", &there(&format!("/jobs/{}", ids[1])));

    let places =
        browser.read("[...document.querySelectorAll('nav a')].map((a) => [a.dataset.key, a.pathname])");
    let places = places.as_array().unwrap();
    assert_eq!(places.len(), 12);
    for place in places {
        let (key, path) = (place[0].as_str().unwrap(), place[1].as_str().unwrap());
        // The second key must follow g within a time limit, which a slow machine could miss.
        browser.stop_clock();
        browser.press(&format!("g{key}"));
        browser.until(&format!("g {key} leads to {path}"), &there(path));
    }
    console.has_no_complaints();
}

#[test]
fn dark_and_exact_times_last_over_a_reload_and_on_other_pages() {
    let console = Console::of(Place::sqlite());
    let id = console.place.enqueue(&[]);
    let browser = &console.browser;
    console.open(&format!("/jobs/{id}"));
    let background = || browser.read("getComputedStyle(document.body).backgroundColor");
    let shown = "getComputedStyle(document.querySelector('time .abs')).display !== 'none'";
    let (light, theme) = (background(), "document.documentElement.dataset.theme");
    assert_eq!((browser.read(theme), browser.read(shown)), (serde_json::Value::Null, false.into()));
    browser.click("[data-does=theme]");
    browser.press("t");
    let dark = background();
    assert_ne!(dark, light);
    for _ in 0..2 {
        browser.reload();
        assert_eq!(
            (browser.read(theme), background(), browser.read(shown)),
            ("dark".into(), dark.clone(), true.into())
        );
    }
    console.open("/queues");
    assert_eq!(background(), dark);
    browser.click("[data-does=theme]");
    assert_eq!(background(), light);
    browser.reload();
    assert_eq!(background(), light);
    console.has_no_complaints();
}

#[test]
fn exact_times_are_in_the_users_zone_with_utc_in_the_tooltip() {
    let console = Console::of(Place::sqlite());
    let id = console.place.enqueue(&[]);
    let browser = &console.browser;
    browser.command("Emulation.setTimezoneOverride", serde_json::json!({ "timezoneId": "Asia/Kathmandu" }));
    console.open(&format!("/jobs/{id}"));
    // Nepal is 5:45 hours ahead, and has no summer time.
    let local = "(() => { const time = document.querySelector('time'), utc = new Date(time.title);
        const there = new Date(utc.getTime() + 345 * 60000).toISOString().slice(0, 19).replace('T', ' ');
        return [time.querySelector('.abs').textContent, there]; })()";
    let shown = browser.read(local);
    assert_eq!(shown[0], shown[1]);
    console.has_no_complaints();
}

#[test]
fn a_table_is_sorted_by_a_column_and_stays_so_when_the_page_refreshes() {
    let console = Console::of(Place::sqlite());
    let many = |queue: &str, count: usize| {
        for _ in 0..count {
            console.place.enqueue(&["--queue", queue]);
        }
    };
    many("a", 2);
    many("b", 1);
    many("c", 10);
    let browser = &console.browser;
    console.open("/queues");
    // The rows, each with the number of its waiting jobs; the server has a queue of its own.
    let rows = || {
        browser.read(
            "[...document.querySelectorAll('tbody tr')].map((row) => row.querySelector('a').textContent + row.cells[1].textContent)
                .filter((row) => /^[abc]\\d+$/.test(row)).join(' ')",
        )
    };
    // Counts are cached: the first ones may be from before the last jobs.
    let counted = |pending: &str| {
        browser.until(pending, &format!("document.querySelector('tbody').textContent.includes('{pending}')"));
    };
    counted("10 pending");
    let sorter = |column: usize| format!("th:nth-child({column}) .sorter");
    browser.click(&sorter(2));
    assert_eq!(rows(), "b1 a2 c10");
    browser.click(&sorter(2));
    assert_eq!(rows(), "c10 a2 b1");
    many("b", 5);
    counted("6 pending");
    assert_eq!(rows(), "c10 b6 a2");
    browser.click(&sorter(1));
    assert_eq!(rows(), "a2 b6 c10");
    console.has_no_complaints();
}
