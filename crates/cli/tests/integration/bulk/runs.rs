//! Tests of runs from start to end.

use serde_json::json;

use crate::bulk::{Members, notes};
use crate::support::{Place, on_each_store, until, until_true};

on_each_store! {
    a_run_is_started_listed_watched_and_shown,
    runs_of_a_group_are_listed_in_the_order_in_which_they_run,
    a_worker_registers_its_definitions_in_the_store,
    a_schedule_starts_a_bulk_job,
    the_end_of_a_run_starts_the_next_bulk_job,
    a_following_bulk_job_gets_the_targets_that_are_retried,
    a_run_that_no_worker_can_run_says_so_in_the_list,
    a_dry_run_leaves_nothing,
    a_worker_performs_a_dry_run_and_the_result_is_its_cost,
    a_dry_run_waits_for_a_worker_that_runs_its_bulk_job,
}

fn a_run_is_started_listed_watched_and_shown(place: Place) {
    let labels = "type = \"notes\"\ncategory = \"popular\"\n";
    let members = Members::new(place, 2_000, &notes("popular", labels));
    let started = members.bulk(&["start", "popular", "--param", "topic=1", "--key", "a"]).ok();
    assert!(started.out.ends_with("  started\n"), "{}", started.out);
    assert!(started.err.contains("it waits: no active worker serves kind popular"), "{}", started.err);
    let id = started.out.split(' ').next().unwrap();
    let again = members.bulk(&["start", "popular", "--param", "topic=1", "--key", "a"]).ok();
    assert!(again.out.starts_with(id) && again.out.contains("duplicate"), "{}", again.out);

    let _work = members.work();
    let watched = members.bulk(&["watch", id]).ok();
    let end = format!("{id}  succeeded: 2,000 of 2,000 (100 %) in ");
    assert!(watched.out.starts_with(&end), "{}", watched.out);
    assert_eq!(members.notes(), 2_000);

    let shown = members.bulk(&["show", id]).ok().out;
    for words in [
        "name       popular (notes, popular)",
        "state      succeeded",
        "effects    every target exactly once",
        "progress   2,000 of 2,000 (100 %)",
        "cursor     all up to 2000 is done; the last target is 2000",
        "rows/s while chunks ran",
        "\"topic\": 1",
        "succeed",
    ] {
        assert!(shown.contains(words), "{words}:\n{shown}");
    }
    let view = members.show(id);
    assert_eq!((&view["done"], &view["failed"], &view["share"]), (&json!(2_000), &json!(0), &json!(1.0)));
    assert_eq!((&view["payload"], &view["history"][0]["verb"]), (&json!({ "topic": 1 }), &json!("create")));

    let listed = members.bulk(&["list", "--type", "notes", "--category", "popular"]).ok().out;
    assert!(listed.contains(id) && listed.contains("succeeded") && listed.contains("100 %"), "{listed}");
    assert_eq!(members.bulk(&["list", "--category", "other", "--json"]).json(), json!([]));
    assert!(members.bulk(&["list", "--state", "running"]).ok().err.contains("no bulk jobs"));
}

fn runs_of_a_group_are_listed_in_the_order_in_which_they_run(place: Place) {
    let group = "group = \"notifications\"\n";
    let config = [notes("popular", group), notes("by-place", group), notes("alone", "")].concat();
    let members = Members::new(place, 10, &config);
    let first = members.start("popular");
    let late = members.start("by-place");
    let urgent = members.start_with("by-place", &["--priority", "1"]);
    let alone = members.start("alone");
    let later = members.start_with("popular", &["--at", "in 10m", "--priority", "1"]);
    let turn = |id: &str| {
        let listed = members.bulk(&["list"]).ok().out;
        let line = listed.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("{listed}"));
        line.split("  ").filter(|field| !field.is_empty()).last().unwrap().trim().to_owned()
    };
    assert_eq!([&first, &urgent, &late].map(|id| turn(id)), ["holds it", "next", "2nd"]);
    assert_eq!(turn(&alone), "holds it");
    assert!(turn(&later).starts_with("in "), "{}", turn(&later));
    let of_group = members.bulk(&["list", "--group", "notifications", "--json"]).json();
    let ids: Vec<&str> =
        of_group.as_array().unwrap().iter().map(|view| view["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&first, &urgent, &late, &later]);
    let shown = members.bulk(&["show", &urgent]).ok().out;
    assert!(shown.contains(&format!("group notifications is taken by job {first}")), "{shown}");
    assert!(shown.contains("next of the runs that wait for the group"), "{shown}");
    members.bulk(&["set", &late, "--priority", "1"]).ok();
    assert_eq!([&late, &urgent].map(|id| turn(id)), ["next", "2nd"], "of one priority the earlier one");
    members.bulk(&["cancel", &first]).ok();
    assert_eq!(turn(&late), "holds it");
}

fn a_worker_registers_its_definitions_in_the_store(place: Place) {
    let members = Members::new(place, 10, &notes("popular", ""));
    let of_store = |name: &str| members.bulk(&["--config", "none.toml", "start", name, "--param", "topic=1"]);
    members.place.write("none.toml", "");
    let refused = of_store("popular");
    assert!(refused.status == 1 && refused.err.contains("and no other bulk job"), "{}", refused.err);
    let work = members.work();
    let id = members.start("popular");
    members.until_state(&id, "succeeded");
    members.place.tamper("delete from note");
    let nearest = of_store("poplar");
    assert!(nearest.status == 1 && nearest.err.contains("did you mean popular?"), "{}", nearest.err);
    let started = of_store("popular").ok().out;
    members.until_state(started.split(' ').next().unwrap(), "succeeded");
    drop(work);
    // The state after a tick: only a job of its kind and group.
    let made = members.start("popular");
    members.place.tamper("delete from milepost.bulk where token = 0");
    members.bulk(&["set", &made, "--rate", "7"]).ok();
    assert_eq!(members.show(&made)["settings"]["rows_per_s"], 7.0);
    members.bulk(&["cancel", &made]).ok();
    // A bulk job that was removed from the file is unknown; its runs remain.
    members.place.write("milepost.toml", notes("other", ""));
    let _work = members.work();
    members.until_state(&members.start("other"), "aborted");
    assert!(of_store("popular").err.contains("there is no bulk job \"popular\""));
    assert_eq!(members.bulk(&["list", "--name", "popular", "--json"]).json().as_array().unwrap().len(), 2);
}

fn a_schedule_starts_a_bulk_job(place: Place) {
    let schedule = "group = \"g\"\nschedule = { every = \"1s\", payload = { topic = 1 } }\n";
    let members = Members::new(place, 50, &notes("popular", schedule));
    members.place.write("none.toml", "[kinds.a]\nexec = { program = \"cat\" }\n");
    let work = members.work();
    let id = until("a tick has made a run that succeeded", || {
        let runs = members.bulk(&["list", "--state", "succeeded", "--json"]).json();
        let run = runs.as_array().unwrap().last();
        run.map(|run| run["id"].as_str().unwrap().to_owned()).ok_or_else(|| members.place.read("work.log"))
    });
    drop(work);
    let job = members.place.job(&id);
    assert_eq!(
        (&job["kind"], &job["group"], &job["queue"]),
        (&"popular".into(), &"g".into(), &"bulk".into())
    );
    assert!(job["nominal_at"].is_string(), "{job}");
    assert_eq!(members.number(&format!("select count(*) from note where run = '{id}'")), 50);
    let names = || {
        let schedules = members.place.run(&["schedules", "list", "--json"]).json();
        schedules
            .as_array()
            .unwrap()
            .iter()
            .map(|its| its["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    members.place.run(&["schedules", "add", "mine", "--every", "1d", "--kind", "other"]).ok();
    assert_eq!(names(), ["mine", "popular"]);
    // A file that has no schedules any more removes that of its bulk job, and no others.
    members.place.write("milepost.toml", notes("popular", "group = \"g\"\n"));
    let _work = members.work();
    until(
        "the file was applied",
        || if names() == ["mine"] { Ok(()) } else { Err(format!("{:?}", names())) },
    );
}

fn the_end_of_a_run_starts_the_next_bulk_job(place: Place) {
    let push = "[bulk.push]\nkey = [\"member\"]\n\
        source = \"select member from note where run = :previous and member > :cursor order by member limit :limit\"\n\
        apply = \"insert into push (run, member, topic) select :previous, member, :topic from chunk\"\n";
    let members = Members::new(place, 300, &(notes("popular", "then = \"push\"\n") + push));
    members
        .place
        .tamper("create table push (run text not null, member bigint not null, topic text not null)");
    members.place.tamper("create index note_run on note (run, member)");
    let _work = members.work();
    let first = members.start("popular");
    members.until_state(&first, "succeeded");
    let next = members.bulk(&["list", "--name", "push", "--json"]).json();
    let next = next[0]["id"].as_str().unwrap();
    members.until_state(next, "succeeded");
    assert_eq!(members.show(next)["payload"], json!({ "topic": 1, "previous": first }));
    assert_eq!(members.number("select count(*) from push"), 300);
}

fn a_following_bulk_job_gets_the_targets_that_are_retried(place: Place) {
    let popular = crate::bulk::section(
        "popular",
        "error_budget = 10\nthen = \"push\"\napply = \"insert into note (run, member) select :run_id, \
         case when id in (7, 8) and not exists (select 1 from mended) then null else id end from chunk\"\n",
    );
    let push = "[bulk.push]\nkey = [\"member\"]\n\
        source = \"select member from note where run = :previous and member > :cursor order by member limit :limit\"\n\
        apply = \"insert into push (member) select member from chunk\"\n";
    let members = Members::new(place, 50, &(popular + push));
    for sql in [
        "create table push (member bigint not null unique)",
        "create table mended (n bigint)",
        "create index note_run on note (run, member)",
    ] {
        members.place.tamper(sql);
    }
    let _work = members.work();
    let first = members.start("popular");
    let pushed = || members.number("select count(*) from push");
    until_true("the others are pushed", || pushed() == 48);
    members.place.tamper("insert into mended values (1)");
    members.bulk(&["retry-failures", &first]).ok();
    until_true("the retried members are pushed, once", || pushed() == 50);
}

fn a_dry_run_leaves_nothing(place: Place) {
    let http = crate::bulk::section(
        "post",
        "http = { url = \"http://127.0.0.1:1\", allow_networks = [\"127.0.0.0/8\"] }\n",
    );
    let members = Members::new(place, 1_000, &[notes("popular", "rate = 10\n"), http].concat());
    let dry = |args: &[&str]| members.bulk(&[&["dry-run", "popular", "--param", "topic=1"], args].concat());
    let tried = dry(&["--rows", "100", "--chunks", "2"]).ok().out;
    for words in [
        "targets   1,000",
        "rows/s with chunks of this size",
        "takes     100 s",
        "nothing: everything was rolled back",
    ] {
        assert!(tried.contains(words), "{words}:\n{tried}");
    }
    let bill = dry(&["--json"]).json();
    assert_eq!(bill["targets"]["rows"], 1_000);
    // On a file, a dry run applies rows for about 100 ms.
    let rows = bill["chunks"][0]["rows"].as_u64().unwrap();
    assert!((10..=500).contains(&rows), "{bill}");
    assert!(bill["busy_s"].as_f64().unwrap() > 0.0 && bill["takes_s"] == 100.0, "{bill}");
    assert_eq!(members.notes(), 0);
    assert_eq!(members.bulk(&["list", "--json"]).json(), json!([]));

    members.place.tamper("insert into note values ('x', 7)");
    let failed = dry(&["--rows", "100"]);
    assert!(failed.status == 1 && failed.out.contains("failure   target 7: "), "{}", failed.out);
    assert_eq!(members.notes(), 1);
    let elsewhere = members.bulk(&["dry-run", "post", "--param", "topic=1"]);
    assert!(elsewhere.status == 1 && elsewhere.err.contains("has no dry run"), "{}", elsewhere.err);
}

fn dry_run(members: &Members, bulk: &str, payload: &serde_json::Value) -> String {
    let (kind, payload) = (format!("milepost.dry-run.{bulk}"), payload.to_string());
    let enqueue = ["enqueue", &kind, "--payload", &payload, "--queue", "bulk", "--json"];
    let made = members.place.run(&enqueue).json();
    made["job"].as_str().unwrap().to_owned()
}

fn a_run_that_no_worker_can_run_says_so_in_the_list(place: Place) {
    let members = Members::new(place, 10, &notes("popular", ""));
    let run = members.start("popular");
    let listed = members.bulk(&["list"]).ok().out;
    let waits = format!("{run}  waits: no active worker serves kind popular in queue bulk");
    assert!(listed.contains("holds it") && listed.contains(&waits), "{listed}");
}

fn a_worker_performs_a_dry_run_and_the_result_is_its_cost(place: Place) {
    let members = Members::new(place, 1_000, &notes("popular", "rate = 10\n"));
    let _work = members.work();
    let ended = |payload: &serde_json::Value| {
        let job = dry_run(&members, "popular", payload);
        let is_ended = || matches!(members.place.job(&job)["state"].as_str(), Some("succeeded" | "failed"));
        until_true("the dry run has ended", is_ended);
        job
    };
    let popular = json!({"bulk": "popular", "parameters": {"topic": 1}, "rows": 100, "chunks": 2});
    let bill = members.place.job(&ended(&popular))["result"].clone();
    assert_eq!(bill["targets"], json!({"rows": 1_000, "exact": true}), "{bill}");
    assert_eq!((&bill["chunks"][1]["rows"], &bill["takes_s"]), (&json!(100), &json!(100.0)));
    assert_eq!(members.notes(), 0);
    members.place.tamper("insert into note values ('x', 7)");
    let bill = members.place.job(&ended(&popular))["result"].clone();
    assert!(bill["failure"]["message"].as_str().unwrap().to_lowercase().contains("unique"), "{bill}");
    assert_eq!(members.notes(), 1);
    for (wrong, words) in [
        (json!({"bulk": "popular"}), "the payload has no \"topic\""),
        (json!({"bulk": "popular", "parameters": {"topic": 1}, "chunks": 1_000}), "chunks is 1000"),
        (json!({"bulk": 7}), "the payload is no dry run"),
    ] {
        let shown = members.place.run(&["jobs", "show", &ended(&wrong)]).ok().out;
        assert!(shown.contains("failed") && shown.contains(words), "{wrong}: {shown}");
    }
}

fn a_dry_run_waits_for_a_worker_that_runs_its_bulk_job(place: Place) {
    let members = Members::new(place, 10, &notes("popular", ""));
    let _other = members.work();
    let job = dry_run(&members, "later", &json!({"bulk": "later", "parameters": {"topic": 1}}));
    let known = dry_run(&members, "popular", &json!({"bulk": "later", "parameters": {"topic": 1}}));
    until_true("a dry run of another bulk job fails", || members.place.job(&known)["state"] == "failed");
    assert_eq!(members.place.job(&job)["state"], "pending");
    members.place.write("milepost.toml", notes("later", ""));
    let _its = members.work();
    until_true("its worker has performed it", || members.place.job(&job)["state"] == "succeeded");
}
