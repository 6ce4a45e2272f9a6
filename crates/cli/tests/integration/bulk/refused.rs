//! Tests that invalid input is rejected with a reason and a remedy.

use crate::bulk::{Members, notes};
use crate::support::{self, Place, on_each_store};

on_each_store! {
    a_worker_refuses_what_the_database_does_not_take_at_its_place,
    what_cannot_be_started_or_steered_is_refused,
    a_faulty_configuration_starts_no_run_but_shows_and_stops_them,
}

const NO_RUN: &str = "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";

fn a_worker_refuses_what_the_database_does_not_take_at_its_place(place: Place) {
    let bad_source = notes("a", "").replace("from member", "from membre");
    let bad_apply = notes("b", "").replace("into note (", "into nota (");
    let no_key = notes("c", "").replace("select id from member", "select topic from member");
    let bad_probe = notes("d", "throttle = { sql = \"select true from membre\" }");
    let members = Members::new(place, 10, &[bad_source, bad_apply, no_key, bad_probe].concat());
    let ran = members.place.run(&["work"]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    for words in [
        "milepost.toml:2:10: the bulk job a cannot run: the database rejects the source: ",
        "milepost.toml:9:9: the bulk job b cannot run: the database rejects the apply: ",
        "milepost.toml:12:10: the bulk job c cannot run: the source does not select its key column id",
        "the bulk job d cannot run: the database rejects the throttle: ",
        "docs/BULK.md",
    ] {
        assert!(ran.err.contains(words), "{words}:\n{}", ran.err);
    }
    assert_eq!(members.place.run(&["workers", "list", "--json"]).json(), serde_json::json!([]));
}

fn what_cannot_be_started_or_steered_is_refused(place: Place) {
    let members = Members::new(place, 10, &notes("popular", ""));
    let plain = members.place.enqueue(&[]);
    let id = members.start("popular");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["start", "popluar"], 1, "there is no bulk job \"popluar\"; did you mean popular?"),
        (&["start", "zzz"], 1, "there are popular"),
        (
            &["start", "popular"],
            1,
            "the payload has no \"topic\", which the SQL of the bulk job uses as :topic",
        ),
        (&["start", "popular", "--payload", "[1]"], 1, "--payload must be a JSON object"),
        (&["start", "popular", "--payload", "{"], 1, "--payload is not JSON"),
        (&["start", "popular", "--param", "topic"], 2, "NAME=VALUE"),
        (&["start", "popular", "--param", "topic=1", "--param", "topic=2"], 1, "is given twice"),
        (&["start", "popular", "--payload", "{}", "--param", "topic=1"], 2, "cannot be used with"),
        (&["start", "popular", "--param", "topic=1", "--priority", "5"], 2, "from 1 (first) to 4"),
        (&["dry-run", "popular"], 1, "the payload has no \"topic\""),
        (&["dry-run", "popluar"], 1, "did you mean popular?"),
        (&["dry-run", "popular", "--param", "topic=1", "--rows", "0"], 2, "--rows"),
        (&["set", &id], 2, "--rate"),
        (&["set", &id, "--rate", "0"], 2, "milepost bulk abort"),
        (&["set", &id, "--duty", "1.5"], 2, "from 0.001 to 1"),
        (
            &["set", &id, "--chunk-min", "9", "--chunk-max", "5"],
            1,
            "set --chunk-min and --chunk-max together",
        ),
        (&["resume", &id], 1, "is pending: there is nothing to resume"),
        (&["retry-failures", &id], 1, "has no failures"),
        (&["abort", NO_RUN], 1, "there is no job"),
        (&["abort", &plain], 1, "is not a bulk job"),
        (&["cancel", &plain], 1, "is not a bulk job"),
        (&["show", &plain], 1, "is not a bulk job"),
        (&["watch", NO_RUN], 1, "there is no job"),
        (&["failures", &plain], 1, "is not a bulk job"),
        (&["set", &plain, "--rate", "1"], 1, "is not a bulk job"),
        (&["show", "popular"], 2, "give the full job id"),
        (&["--config", "missing.toml", "start", "popular"], 1, "cannot read the configuration missing.toml"),
    ];
    for (args, status, words) in cases {
        let ran = members.bulk(args);
        assert!(ran.status == *status && ran.err.contains(words), "{args:?}: {} {}", ran.status, ran.err);
        assert_eq!(ran.out, "", "{args:?}");
    }
    members.bulk(&["cancel", &id]).ok();
    let resumed = members.bulk(&["resume", &id]);
    assert!(
        resumed.status == 1 && resumed.err.contains("is canceled and cannot be resumed"),
        "{}",
        resumed.err
    );
    assert_eq!(members.notes(), 0);
}

fn a_faulty_configuration_starts_no_run_but_shows_and_stops_them(place: Place) {
    let members = Members::new(place, 10, &notes("popular", ""));
    let id = members.start("popular");
    members.place.write("milepost.toml", "bulk = 7\n");
    assert_eq!(members.bulk(&["start", "popular", "--param", "topic=1"]).status, 2);
    let listed = members.bulk(&["list"]).ok();
    assert!(listed.out.contains(&id) && listed.err.is_empty(), "{}", listed.err);
    let store = &members.place.store;
    members.place.write("milepost.toml", format!("store = \"{store}\"\nbulk = 7\n"));
    let list = || {
        support::Ran::from(
            members.place.command(&["bulk", "list"]).env_remove("MILEPOST_STORE").output().unwrap(),
        )
    };
    assert!(list().ok().out.contains(&id));
    members.place.write("milepost.toml", "store = \n");
    let lost = list();
    assert!(lost.status == 2 && lost.err.contains("milepost.toml:1:"), "{}", lost.err);
    members.bulk(&["cancel", &id]).ok();
}
