//! Tests of every page with content.

use crate::browser::Console;
use crate::support::filling::Filled;
use crate::support::{Place, on_each_store};

on_each_store! {
    no_page_has_an_error_or_breaks_its_content_security_policy,
}

/// The id of no job.
const NOBODY: &str = "01900000-0000-7000-8000-000000000000";
/// Paths of missing items and pages.
const NOWHERE: [&str; 3] = ["/jobs/no-such-job", "/batches/no-such-batch/rerun?what=failed", "/no/such/path"];

/// Fills a store with all kinds of content and returns the paths of its pages.
pub(crate) fn paths(place: &Place) -> Vec<String> {
    let Filled { job, bulk, batch } = Filled::of(place);
    let mut paths = vec![
        format!("/jobs/{job}"),
        format!("/bulk/{bulk}"),
        format!("/batches/{batch}"),
        format!("/batches/{batch}/rerun?what=downstream&task=first"),
        format!("/jobs/change?operation=cancel&id={job}"),
        "/jobs?state=failed&payload=a%3Db".to_owned(),
        format!("/jobs/{NOBODY}"),
    ];
    paths.extend(NOWHERE.map(str::to_owned));
    let places = [
        "/",
        "/jobs",
        "/queues",
        "/kinds",
        "/kinds/mail",
        "/bulk-definitions/popular",
        "/workers",
        "/schedules",
        "/schedules?ticks=@daily",
        "/schedules/nightly",
        "/bulk",
        "/batches",
        "/dags/chain",
        "/events",
        "/dead-letters",
        "/settings",
    ];
    paths.extend(places.map(str::to_owned));
    paths
}

fn no_page_has_an_error_or_breaks_its_content_security_policy(place: Place) {
    let paths = paths(&place);
    let console = Console::of(place);
    let browser = &console.browser;
    console.open(&paths[0]);
    console.until_state("failed");
    let missing: Vec<&String> =
        paths.iter().filter(|path| path.ends_with(NOBODY) || NOWHERE.contains(&path.as_str())).collect();
    for path in &paths {
        console.open(path);
        browser.until(&format!("{path} has its title"), "document.title.endsWith('Milepost')");
        browser.press("r");
        for _ in 0..2 {
            browser.press("d");
        }
        for at in 0..browser.count("main [popovertarget]:not(form *)") {
            let opened = format!(
                "(() => {{ const button = [...document.querySelectorAll('main [popovertarget]:not(form *)')][{at}];
                   const sheet = button && document.getElementById(button.getAttribute('popovertarget'));
                   if (!sheet) return false;
                   button.click();
                   const is = sheet.matches(':popover-open');
                   sheet.hidePopover();
                   return is; }})()"
            );
            browser.until(&format!("button {at} of {path} opens its form"), &opened);
        }
        // A warning about a missing page may arrive while the next page is loading.
        let complaints = browser.complaints();
        let is_of_missing = |words: &String| missing.iter().any(|path| words.contains(path.as_str()));
        let expected = |words: &String| is_of_missing(words) && words.contains("status of 4");
        assert!(complaints.iter().all(expected), "{path}: {complaints:?}");
    }
    // Checks that the test receives warnings.
    browser.read("document.body.append(Object.assign(document.createElement('style'), { textContent: 'p { color: red }' }))");
    browser.read("setTimeout(() => nothing.there, 0)");
    browser.hears_of(&["Content Security Policy", "nothing is not defined"]);
}
