//! Tests of bulk jobs whose targets are in a PostgreSQL database other than the store.

use milepost_testkit::database::Database;
use serde_json::json;

use crate::bulk::{Members, notes, section};
use crate::support::{self, Place, on_each_store};

on_each_store! {
    a_bulk_job_runs_on_a_database_that_the_configuration_names,
    a_hard_abort_stops_the_statement_on_the_other_database,
    every_target_of_the_other_database_becomes_a_job_of_the_store,
    a_database_that_is_missing_or_lacks_something_is_told_when_work_begins,
}

/// A store, and a database with members.
struct Shop {
    members: Members,
    url: String,
    _database: Database,
}

impl Shop {
    fn new(place: Place, members: u32, config: &str) -> Self {
        let database = support::block_on(Database::create());
        let url = database.url();
        support::psql(
            &url,
            &format!(
                "create table member (id bigint primary key, topic bigint not null);
                 create index member_topic on member (topic, id);
                 create table note (run text not null, member bigint not null);
                 insert into member select n, 1 from generate_series(1, {members}) n"
            ),
        );
        // The server does not ask for a password.
        let with_password = url.replace("postgres@", "postgres:s3cret@");
        assert_ne!(url, with_password);
        let config = format!("{config}\n[database.shop]\nurl = \"{with_password}\"\n");
        Self { members: Members::new(place, 3, &config), url, _database: database }
    }

    fn notes(&self) -> String {
        support::psql(&self.url, "select count(*) || ' of ' || count(distinct member) from note")
    }
}

fn a_bulk_job_runs_on_a_database_that_the_configuration_names(place: Place) {
    let shop = Shop::new(place, 2_000, &notes("popular", "database = \"shop\"\n"));
    let members = &shop.members;
    let tried = members.bulk(&["dry-run", "popular", "--param", "topic=1"]).ok().out;
    assert!(tried.contains("targets   2,000") && tried.contains("everything was rolled back"), "{tried}");
    assert_eq!(shop.notes(), "0 of 0");
    let work = members.work();
    let id = members.start("popular");
    let view = members.until_state(&id, "succeeded");
    assert_eq!((&view["done"], &view["effects"]), (&json!(2_000), &json!("at_least_once_per_chunk")));
    assert_eq!((shop.notes().as_str(), members.notes()), ("2000 of 2000", 0));
    let shown = members.bulk(&["show", &id]).ok().out;
    for words in [
        "at least once per chunk: the current chunk",
        "\ntargets    on the database shop (PostgreSQL at 127.0.0.1:",
    ] {
        assert!(shown.contains(words), "{words}:\n{shown}");
    }
    let log = support::until("the worker reports completion", || match members.place.read("work.log") {
        log if log.contains("the run of a bulk job is complete") => Ok(log),
        log => Err(log),
    });
    drop(work);
    assert!(!format!("{log}{shown}{view}").contains("s3cret"));
}

fn a_hard_abort_stops_the_statement_on_the_other_database(place: Place) {
    let apply = "apply = \"insert into note (run, member) select :bulk_id, id from chunk, pg_sleep(600)\"\n";
    let shop = Shop::new(place, 10, &section("popular", &format!("{apply}database = \"shop\"\n")));
    let members = &shop.members;
    let _work = members.work();
    let id = members.start("popular");
    let asleep =
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
    let sleeps = || support::psql(&shop.url, asleep) == "1";
    members.until(&id, "its chunk sleeps", |_| sleeps());
    let aborted = members.bulk(&["abort", &id, "--hard"]).ok().out;
    assert!(aborted.contains("the current one is canceled and rolled back"), "{aborted}");
    members.until_state(&id, "aborted");
    assert!(!sleeps() && shop.notes() == "0 of 0");
    // Commands without access to that database report it.
    members.place.write("other.toml", "");
    members.bulk(&["resume", &id]).ok();
    members.until(&id, "its chunk sleeps again", |_| sleeps());
    let aborted = members.bulk(&["--config", "other.toml", "abort", &id, "--hard"]).ok().out;
    assert!(
        aborted.contains("database shop (PostgreSQL at ") && aborted.contains("does not contain"),
        "{aborted}"
    );
    members.bulk(&["abort", &id, "--hard"]);
    members.until_state(&id, "aborted");
}

fn every_target_of_the_other_database_becomes_a_job_of_the_store(place: Place) {
    let lines = "enqueue = { kind = \"push\" }\ndatabase = \"shop\"\n";
    let shop = Shop::new(place, 120, &section("popular", lines));
    let members = &shop.members;
    let _work = members.work();
    let id = members.start("popular");
    members.until_state(&id, "succeeded");
    let jobs = members.place.run(&["jobs", "list", "--kind", "push", "--limit", "1000", "--json"]).json();
    assert_eq!(jobs.as_array().unwrap().len(), 120);
    let dry = members.bulk(&["dry-run", "popular", "--param", "topic=1"]);
    assert!(dry.status == 1 && dry.err.contains("has no dry run"), "{}", dry.err);
}

fn a_database_that_is_missing_or_lacks_something_is_told_when_work_begins(place: Place) {
    let config = notes("popular", "database = \"shop\"\n").replace("from member", "from membre");
    let shop = Shop::new(place, 1, &config);
    let members = &shop.members;
    let ran = members.place.run(&["work"]);
    let words = "milepost.toml:2:10: the bulk job popular cannot run: the database rejects the source: ";
    assert!(ran.status == 2 && ran.err.contains(words), "{}", ran.err);

    // Of this encoding, PostgreSQL returns bytes that are no text, and a run could not continue after such a key.
    let ascii = support::block_on(Database::create_as("template template0 encoding 'SQL_ASCII' locale 'C'"));
    let config = notes("popular", "database = \"ascii\"\n");
    members.place.write("milepost.toml", format!("{config}[database.ascii]\nurl = \"{}\"\n", ascii.url()));
    let ran = members.place.run(&["work"]);
    let words = "the database has the encoding SQL_ASCII, but UTF8 is required";
    assert!(ran.status != 0 && ran.err.contains(words), "{}", ran.err);

    let gone = "[database.gone]\nurl = \"postgres://app:s3cret@127.0.0.1:1/gone\"\n";
    members.place.write("milepost.toml", notes("popular", "database = \"gone\"\n") + gone);
    for args in [&["work"] as &[&str], &["bulk", "dry-run", "popular", "--param", "topic=1"]] {
        let ran = members.place.run(args);
        let words = "database gone (PostgreSQL at 127.0.0.1:1/gone) cannot be used now";
        assert!(ran.status == 1 && ran.err.contains(words), "{}", ran.err);
        assert!(!ran.err.contains("s3cret"), "{}", ran.err);
    }
}
