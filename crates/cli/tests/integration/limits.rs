//! Tests of limits on the command line.

use crate::support::{Place, on_each_store};

on_each_store! {
    limits_are_set_listed_and_removed,
    a_job_that_waits_for_a_rate_says_so,
}

fn limits_are_set_listed_and_removed(place: Place) {
    let said = place.run(&["limits", "set", "--kind", "mail", "--rate", "10/s", "--burst", "20"]).ok().out;
    assert_eq!(said, "kind mail is limited to 10/s with a burst of 20\n");
    let said = place
        .run(&["limits", "set", "--group", "tenant:*", "--concurrency", "3", "--rate", "100/m"])
        .ok()
        .out;
    assert_eq!(said, "group tenant:* is limited to 3 at once and 100/m with a burst of 1\n");
    place.enqueue(&["--group", "tenant:7"]);
    let list = place.run(&["limits", "list", "--json"]).json();
    assert_eq!(
        (&list[0]["kind"], &list[0]["burst"], &list[0]["tokens"]),
        (&"mail".into(), &20.into(), &20.0.into())
    );
    assert_eq!(list[0]["source"], "operator");
    assert_eq!((&list[1]["group"], &list[1]["slots"]), (&"tenant:*".into(), &3.into()));
    let table = place.run(&["limits", "list"]).ok().out;
    assert!(table.contains("100/m") && table.contains("tenant:*"), "{table}");

    let remove = ["limits", "remove", "--group", "tenant:*"];
    assert_eq!(place.run(&remove).ok().out, "group tenant:* has no limit any more\n");
    assert_eq!(place.run(&remove).ok().out, "group tenant:* had no limit\n");
    assert_eq!(place.run(&["limits", "list", "--json"]).json().as_array().unwrap().len(), 1);
}

fn a_job_that_waits_for_a_rate_says_so(place: Place) {
    place.run(&["limits", "set", "--kind", "mail", "--rate", "1/h"]).ok();
    let (_, second) = (place.enqueue(&[]), place.enqueue(&[]));
    place.work(None);
    let show = place.run(&["jobs", "show", &second]).ok().out;
    assert!(
        show.contains("the rate limit of kind mail is reached: the next start is possible in "),
        "{show}"
    );
    assert_eq!(place.job(&second)["waiting_for"]["reason"], "rate");
}

#[test]
fn limits_that_cannot_be_are_refused_with_a_remedy() {
    let place = Place::without_store();
    for (args, word) in [
        (&["--kind", "mail", "--rate", "0/s"][..], "it must be from"),
        (&["--kind", "mail", "--rate", "10/s", "--burst", "0"], "1..="),
        (&["--kind", "mail", "--rate", "10/fortnight"], "10/s, 100/m"),
        (&["--kind", "mail", "--group", "g", "--rate", "1/s"], "cannot be used with"),
        (&["--kind", "mail", "--concurrency", "3"], "cannot be used with"),
        (&["--kind", "mail"], "--rate"),
        (&["--group", "g"], "--concurrency"),
        (&["--group", "g", "--concurrency", "0"], "1..="),
        (&["--group", "g", "--concurrency", "2", "--burst", "3"], "--rate"),
        (&["--rate", "1/s"], "--kind"),
    ] {
        let ran = place.run(&[&["limits", "set"], args].concat());
        assert_eq!(ran.status, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(word), "{args:?}: {}", ran.err);
    }
    let ran = place.run(&["limits", "set", "--group", "a:b:*", "--concurrency", "2"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("prefix:*"), "{}", ran.err);
    assert!(!place.path("jobs.db").exists(), "a refused command creates no store");
}
