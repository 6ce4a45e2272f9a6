//! Tests of live updates and of actions on pages.

use crate::browser::Console;
use crate::support::{Place, on_each_store};

on_each_store! {
    a_bulk_jobs_bar_moves_until_it_is_aborted_and_goes_on_when_it_is_resumed,
    a_failed_job_is_retried_on_its_page_and_the_page_tells_how_it_goes,
    a_batchs_graph_changes_its_colours_while_it_runs,
}

const BULK: &str = r#"
[bulk.popular]
source = "select id from member where topic = :topic and id > :cursor order by id limit :limit"
key = ["id"]
apply = "insert into note (run, member) select :bulk_id, id from chunk"
rate = 20
chunk = { min = 1, max = 20 }
"#;

fn a_bulk_jobs_bar_moves_until_it_is_aborted_and_goes_on_when_it_is_resumed(place: Place) {
    place.write("milepost.toml", BULK);
    place.run(&["migrate"]).ok();
    for sql in [
        "create table member (id bigint primary key, topic bigint not null)",
        "create index member_topic on member (topic, id)",
        "create table note (run text not null, member bigint not null unique)",
        "with recursive n(id) as (select 1 union all select id + 1 from n where id < 6000)
         insert into member (id, topic) select id, 1 from n",
    ] {
        place.tamper(sql);
    }
    let console = Console::of(place);
    let started = console.place.run(&["bulk", "start", "popular", "--param", "topic=1", "--json"]).json();
    let id = started["job"].as_str().unwrap();
    let (browser, abort, resume) = (&console.browser, format!("act-abort-{id}"), format!("act-resume-{id}"));
    console.open(&format!("/bulk/{id}"));
    console.mark_page();
    for _ in 0..3 {
        let was = browser.read("document.querySelector('progress')?.value ?? 0");
        browser.until("the bar moves", &format!("document.querySelector('progress')?.value > {was}"));
    }
    console.was_not_loaded_anew();

    let (form, stop) = (format!("#{abort}"), format!("#{abort} .buttons .danger"));
    browser.click(&format!("[popovertarget='{abort}']"));
    browser.click(&stop);
    let is_open = browser.read(&format!("document.querySelector('{form}').matches(':popover-open:invalid')"));
    assert_eq!(is_open, true, "the form asks for a reason");
    console.was_not_loaded_anew();
    browser.read(&format!("document.querySelector('{form}').noValidate = true"));
    browser.click(&stop);
    browser.until_says(&format!("{form} .flash.refused"), "reason is missing");
    console.was_not_loaded_anew();
    browser.fill(&format!("{form} [name=reason]"), "wrong text");
    browser.click_through(&stop);
    browser.until_says(".flash.done", "");
    console.until_state("aborted");

    console.act(&resume, "the text is right after all");
    browser.click("[popovertarget^=act-set-]");
    browser.fill("[id^=act-set-] [name=rate]", "1000000");
    browser.fill("[id^=act-set-] [name=rows_max]", "5000");
    browser.fill("[id^=act-set-] [name=reason]", "nobody is about");
    browser.click_through("[id^=act-set-] .buttons .go");
    browser.until_says(".flash.done", "from the next chunk on");
    console.mark_page();
    // On a busy machine, chunks remain small.
    let over = "document.querySelector('.head > .state').textContent.includes('succeeded')";
    while browser.read(over) != true {
        let was = browser.read("document.querySelector('progress')?.value ?? 0");
        let moves = format!("{over} || document.querySelector('progress')?.value > {was}");
        browser.until("the bar moves", &moves);
    }
    browser.until("the bar is full", "document.querySelector('progress').value === 6000");
    console.was_not_loaded_anew();
    assert_eq!(console.place.tamper("select cast(count(*) as text) from note"), "6000");
    console.has_no_complaints();
}

/// A kind that fails until the file `ready` exists; then it runs until the file `go` exists.
const READY: &str = r#"
[kinds.mail]
exec = { program = "sh", args = ["-c", "test -e ready || { echo 'it is not ready' >&2; exit 65; }; until test -e go; do sleep 0.02; done"] }
"#;

fn a_failed_job_is_retried_on_its_page_and_the_page_tells_how_it_goes(place: Place) {
    place.write("milepost.toml", READY);
    let console = Console::of(place);
    let id = console.place.enqueue(&["--max-attempts", "1"]);
    let browser = &console.browser;
    console.open(&format!("/jobs/{id}"));
    console.mark_page();
    console.until_state("failed");
    browser.until_says(".notice.bad", "it is not ready");
    console.was_not_loaded_anew();

    console.place.write("ready", "");
    console.act("act-retry", "it is ready now");
    console.until_state("running");
    console.mark_page();
    console.place.write("go", "");
    console.until_state("succeeded");
    browser.until_says("table", "it is ready now");
    console.was_not_loaded_anew();
    console.has_no_complaints();
}

const CHAIN: &str = r#"
name = "chain"
tasks.first = { kind = "gate" }
tasks.second = { kind = "gate", after = ["first"] }
"#;
/// A kind whose jobs each wait for a file `go-*`, which they consume.
const GATES: &str = r#"
[batch.chain]
file = "chain.toml"
[kinds.gate]
exec = { program = "sh", args = ["-c", "until mv go-* gone 2>/dev/null; do sleep 0.02; done; echo '{}'"] }
"#;

fn a_batchs_graph_changes_its_colours_while_it_runs(place: Place) {
    place.write("chain.toml", CHAIN);
    place.write("milepost.toml", GATES);
    place.run(&["batch", "define", "chain.toml"]).ok();
    let console = Console::of(place);
    let started = console.place.run(&["batch", "start", "chain", "--json"]).json();
    console.open(&format!("/batches/{}", started["batch"].as_str().unwrap()));
    console.mark_page();
    let browser = &console.browser;
    let colour = |state: &str| {
        let rect = format!("document.querySelector('svg.dag .g-{state} rect')");
        browser.until(
            state,
            &format!("{rect} && getComputedStyle({rect}).fill + getComputedStyle({rect}).stroke"),
        )
    };
    let (active, waiting) = (colour("active"), colour("waiting"));
    console.place.write("go-1", "");
    browser
        .until("the second runs", "document.querySelectorAll('svg.dag g')[1].classList.contains('g-active')");
    let succeeded = colour("succeeded");
    assert!(
        active != succeeded && active != waiting && waiting != succeeded,
        "{active} {waiting} {succeeded}"
    );
    console.place.write("go-2", "");
    browser.until("all are done", "document.querySelectorAll('svg.dag .g-succeeded').length === 2");
    console.until_state("done");
    console.was_not_loaded_anew();
    console.has_no_complaints();
}
