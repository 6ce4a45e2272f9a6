//! Tests of `milepost prune`.

use crate::support::{Place, failure, on_each_store};
use milepost_core::finish::End;

on_each_store! {
    what_is_over_is_counted_then_forgotten,
    each_period_can_be_given,
    a_period_that_cannot_be_is_refused_with_a_remedy,
    nothing_is_deleted_that_the_configuration_keeps,
}

/// Creates a succeeded, a canceled, a failed and a waiting job; returns their ids.
fn stocked(place: &Place) -> [String; 4] {
    place.run(&["migrate"]).ok();
    let succeeded = place.enqueue(&["--payload", "1", "--key", "k"]);
    place.work(Some(End::Succeed { result: None }));
    let failed = place.enqueue(&["--payload", "2"]);
    place.work(Some(End::Fail { failure: failure("broken") }));
    let canceled = place.enqueue(&["--payload", "3"]);
    place.run(&["jobs", "cancel", &canceled]).ok();
    let waiting = place.enqueue(&["--payload", "4"]);
    [succeeded, canceled, failed, waiting]
}

const ALL: [&str; 6] = ["--succeeded", "0s", "--canceled", "0s", "--failed", "0s"];

fn what_is_over_is_counted_then_forgotten(place: Place) {
    let [.., waiting] = stocked(&place);
    let nothing = place.run(&["prune", "--json"]).json();
    assert_eq!((&nothing["succeeded"], &nothing["rows"]), (&0.into(), &0.into()), "a week has not passed");

    let due = place.run(&[&["prune", "--dry-run", "--json"], &ALL[..]].concat()).json();
    assert_eq!(due["dry_run"], true);
    assert_eq!(place.ids().len(), 4, "a dry run deletes nothing");
    let pruned = place.run(&[&["prune", "--json"], &ALL[..]].concat()).json();
    for what in ["succeeded", "canceled", "failed"] {
        assert_eq!((&due[what], &pruned[what]), (&1.into(), &1.into()), "{what}");
    }
    assert_eq!(place.ids(), [waiting]);
    place.enqueue(&["--payload", "5", "--key", "k"]);
    assert_eq!(place.ids().len(), 2, "the key was deleted with its job");
}

fn nothing_is_deleted_that_the_configuration_keeps(place: Place) {
    let [succeeded, .., failed, waiting] = stocked(&place);
    place.write(
        "milepost.toml",
        "[retention]\nsucceeded = \"forever\"\ncanceled = \"0s\"\nfailed = \"0s\"\nevents = \"forever\"\ninbox = \"forever\"\n",
    );
    let shown = place.run(&["prune", "--failed", "1d"]).ok().out;
    assert!(shown.contains("forever"), "{shown}");
    let mut left = place.ids();
    left.sort_unstable();
    let mut expected = [succeeded, failed, waiting];
    expected.sort_unstable();
    assert_eq!(left, expected, "the canceled job is deleted, the failed one is kept for a day");

    place.run(&["events", "emit", "order", "17", "order.paid"]).ok();
    let kept = place.run(&["events", "prune"]).ok().out;
    assert!(kept.contains("kept forever"), "{kept}");
    let kept = place.run(&["inbox", "prune"]).ok().out;
    assert!(kept.contains("kept forever"), "{kept}");
    place.write("milepost.toml", "[retention]\nsucceeded = 7\n");
    assert_eq!(place.run(&["prune"]).status, 2, "a faulty configuration deletes nothing");
}

fn each_period_can_be_given(place: Place) {
    let [succeeded, canceled, failed, waiting] = stocked(&place);
    let shown = place.run(&["prune", "--canceled", "0s", "--history", "0s", "--keys", "forever"]).ok();
    assert!(shown.out.contains("canceled and skipped jobs"), "{}", shown.out);
    assert!(shown.err.contains("rows in"), "{}", shown.err);
    let mut left = place.ids();
    left.sort_unstable();
    let mut expected = [succeeded.clone(), failed, waiting];
    expected.sort_unstable();
    assert_eq!(left, expected, "without {canceled}");
    assert_eq!(place.job(&succeeded)["history"].as_array().map(Vec::len), Some(1), "only how it ended");
}

fn a_period_that_cannot_be_is_refused_with_a_remedy(place: Place) {
    let refused = place.run(&["prune", "--succeeded", "soon"]);
    assert_eq!(refused.status, 2);
    assert!(refused.err.contains("forever") && refused.err.contains("10m"), "{}", refused.err);
    let refused = place.run(&["prune", "--workers", "1h"]);
    assert_eq!(refused.status, 1);
    assert!(refused.err.contains("a day or longer"), "{}", refused.err);
}
