//! A walk of an operator who is called at night: from the overview, the right button for each problem is at most two clicks away.

use std::time::Duration;

use milepost_core::event::{Failure, Outcome, PageSize, Undelivered};
use milepost_core::port::Store;
use milepost_core::worker::NewWorker;
use milepost_testkit::relay;

use crate::browser::Console;
use crate::support::{Place, block_on, on_each_store};

on_each_store! {
    each_problem_has_its_button_within_two_clicks_of_the_overview,
}

/// Jobs of kind mail fail, and a bulk job runs for minutes.
const CONFIG: &str = r#"
[kinds.mail]
exec = { program = "sh", args = ["-c", "echo 'the server is down' >&2; exit 65"] }
[bulk.announce]
source = "select id from member where id > :cursor order by id limit :limit"
key = ["id"]
apply = "insert into note (run, member) select :bulk_id, id from chunk"
rate = 20
chunk = { min = 1, max = 20 }
"#;

/// Halts an aggregate of a subscription, and registers the only worker of a kind, which dies later.
async fn break_things(store: &dyn Store) {
    let (_, mut reader) = relay::reader(store, "orders", Duration::from_secs(60)).await;
    let page = reader.page(PageSize { events_max: 100, bytes_max: 1_000_000 }).await.unwrap();
    let halted = Failure {
        event: page.events[0].id,
        deliveries: 9,
        why: "400 Bad Request".to_owned(),
        then: Undelivered::Halt,
    };
    reader.commit(&Outcome { failures: vec![halted], ..Outcome::default() }).await.unwrap();
    let worker = NewWorker {
        name: "printer".to_owned(),
        queues: vec!["letters".to_owned()],
        kinds: vec!["letter".to_owned()],
        lease: Duration::from_secs(60),
        ..NewWorker::default()
    };
    store.register_worker(&worker).await.unwrap();
}

fn fill(place: &Place) {
    place.write("milepost.toml", CONFIG);
    place.run(&["migrate"]).ok();
    for sql in [
        "create table member (id bigint primary key)",
        "create table note (run text not null, member bigint not null)",
        "with recursive n(id) as (select 1 union all select id + 1 from n where id < 6000)
         insert into member (id) select id from n",
    ] {
        place.tamper(sql);
    }
    place.enqueue(&["--max-attempts", "1"]);
    place.run(&["enqueue", "report", "--queue", "reports"]).ok();
    place.run(&["queues", "pause", "reports", "--reason", "migration"]).ok();
    place.run(&["enqueue", "letter", "--queue", "letters"]).ok();
    place.run(&["events", "emit", "order", "17", "order.paid"]).ok();
    block_on(async { break_things(place.open().await.as_ref()).await });
    place.expire_leases("printer");
}

/// Returns the selector of the alert with this title, after it has been shown on the overview.
fn alert(console: &Console, title: &str) -> String {
    let browser = &console.browser;
    console.open("/");
    let at = format!(
        "[...document.querySelectorAll('.alert')].findIndex((it) => it.querySelector('b').textContent.includes({title:?})) + 1"
    );
    let place = browser.until(&format!("the overview shows {title:?}"), &at);
    format!(".alert:nth-child({place})")
}

/// Opens the only form with this label within an element, gives a reason, and submits it.
fn press(console: &Console, within: &str, label: &str) {
    let browser = &console.browser;
    let id = format!(
        "(() => {{ const all = [...document.querySelectorAll('{within} [popovertarget]:not(form *)')]
               .filter((it) => it.textContent === {label:?});
           return all.length === 1 && all[0].getAttribute('popovertarget'); }})()"
    );
    let id = browser.until(&format!("{within} has one button {label:?}"), &id);
    console.act(id.as_str().unwrap(), "called at night");
    browser.until_says(".flash.done", "");
}

fn each_problem_has_its_button_within_two_clicks_of_the_overview(place: Place) {
    fill(&place);
    let console = Console::of(place);
    let browser = &console.browser;
    console.place.run(&["bulk", "start", "announce"]).ok();

    // A bulk job that overloads the database: two clicks to its speed, one to its end.
    console.open("/");
    browser.until_says("main h2", "In progress");
    browser.until_says("main tr", "announce");
    browser.click_through("main tr a[href^='/bulk/']");
    browser.click("[popovertarget^=act-set-]");
    browser.fill("[id^=act-set-] [name=rate]", "1");
    browser.fill("[id^=act-set-] [name=reason]", "called at night");
    browser.click_through("[id^=act-set-] .buttons .go");
    browser.until_says(".flash.done", "from the next chunk on");
    console.open("/");
    browser.until_says("main tr button", "Abort…");

    // A failing kind: one click slows it down, one shows what would be retried.
    let failing = alert(&console, "failed: mail");
    browser.until_says(&failing, "the server is down");
    press(&console, &failing, "Slow down the kind…");
    let failing = alert(&console, "failed: mail");
    browser.until_says(&format!("{failing} a.button"), "Retry now…");
    browser.click_through(&format!("{failing} a.button[href^='/jobs/change']"));
    browser.until_says("main", "1 job");

    // A paused queue with waiting jobs: one click.
    let paused = alert(&console, "Queue reports is paused");
    browser.until_says(&paused, "1 job waits");
    press(&console, &paused, "Resume the queue…");

    // An aggregate that halts its events: two clicks.
    let halted = alert(&console, "halted in orders");
    browser.click_through(&format!("{halted} a.button"));
    browser.until_says("#parked", "400 Bad Request");
    press(&console, "#parked", "Skip…");

    // A dead worker: its alert names the kinds without a worker.
    let died = alert(&console, "worker died");
    browser.until_says(&died, "printer");
    browser.until_says(&died, "No active worker runs jobs of kind letter in queue letters");
    browser.click_through(&format!("{died} a.button"));
    browser.until_says("main", "printer");

    // The alerts of the solved problems are gone from the overview.
    console.open("/");
    let left =
        "[...document.querySelectorAll('.alert b')].every((it) => !/paused|halted/.test(it.textContent))";
    browser.until("neither a paused queue nor a halted aggregate is left", left);
    console.has_no_complaints();
}
