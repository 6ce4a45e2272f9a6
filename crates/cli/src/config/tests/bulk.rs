//! Tests of bulk jobs: complete and rejected ones.

use milepost::bulk::Effects;

use super::*;

pub(super) const SOURCE: &str =
    "source = \"select id from member where id > :cursor order by id limit :limit\"";
pub(super) const APPLY: &str = "apply = \"insert into note select :bulk_id, id from chunk\"";
pub(super) const OVER_FILE: &str = "[bulk.n]\ncolumns = { id = \"integer\", name = \"text\" }\n";

/// Returns a bulk job `n` with a source in line 2, a key in line 3, and these lines from line 4 on.
pub(super) fn bulk(lines: &str) -> String {
    format!("[bulk.n]\n{SOURCE}\nkey = [\"id\"]\n{lines}\n")
}

#[test]
fn bulk_jobs_are_read_in_full() {
    let text = r#"
        [bulk.popular]
        type = "notification rows"
        category = "popular content"
        group = "notifications"
        queue = "slow"
        priority = 3
        max_attempts = 7
        source = """
            select id, name from member
            where topic = :topic and id > :cursor order by id limit :limit"""
        key = ["id"]
        apply = "insert into note (run, member) select :bulk_id, id from chunk"
        chunk = { target = "200ms", min = 10, max = 500 }
        rate = 2000
        duty = 0.5
        windows = [{ from = "22:00", to = "06:00", days = ["mon", "tue"] }]
        zone = "Europe/Berlin"
        error_budget = 20
        then = "push"
        schedule = { cron = "0 22 * * *", zone = "Europe/Berlin", payload = { topic = 4 }, misfire = "skip" }
        [bulk.push]
        source = "select run, id from note where (run, id) > (:cursor) order by run, id limit :limit"
        key = ["run", "id"]
        enqueue = { kind = "send", queue = "pushes", priority = 4, group = "g", max_attempts = 3, timeout = "5s" }
        [bulk.tell]
        source = "select id, name from member where id > :cursor order by id limit :limit"
        key = ["id"]
        emit = { aggregate_type = "member", aggregate_id = "id", event_type = "member.noticed", payload = ["name"], headers = { tenant = "name" } }
        [bulk.post]
        source = "select id from note where id > :cursor order by id limit :limit"
        key = ["id"]
        http = { url = "https://mail.internal/many" }
    "#;
    let config =
        parse(&text.replace("(run, id) > (:cursor)", "(run, id) > :cursor"), Path::new("/"), |_| None);
    let mut bulks = config.unwrap().bulk.unwrap();
    let popular = &bulks["popular"];
    let definition = popular.definition("popular").unwrap();
    assert_eq!(definition.labels.r#type.as_deref(), Some("notification rows"));
    assert_eq!((definition.group.as_str(), definition.queue.as_str()), ("notifications", "slow"));
    assert_eq!((definition.priority.get(), definition.max_attempts, definition.failures_max), (3, 7, 20));
    assert_eq!((definition.sizing.target.as_millis(), definition.sizing.rows_max), (200, 500));
    assert_eq!((definition.load.rows_per_s, definition.load.duty), (Some(2000.0), 0.5));
    assert_eq!((definition.then.as_deref(), definition.effects), (Some("push"), Effects::ExactlyOnce));
    let noon = "2026-02-02T12:00:00[Europe/Berlin]".parse::<jiff::Zoned>().unwrap();
    let opens_at = popular.windows().unwrap().unwrap().opens_at(noon.timestamp()).unwrap();
    assert_eq!(opens_at.as_second() - noon.timestamp().as_second(), 10 * 3600);
    let schedule = popular.schedule("popular").unwrap().unwrap();
    let (_, job) = schedule.makes.columns();
    assert_eq!((schedule.name.as_str(), job.kind.as_str()), ("popular", "popular"));
    assert_eq!(job.group.as_deref(), Some("notifications"));
    assert_eq!((job.payload.get(), job.max_attempts), (r#"{"topic":4}"#, 7));
    let push = bulks.remove("push").unwrap();
    let definition = push.definition("push").unwrap();
    assert_eq!((definition.group.as_str(), definition.queue.as_str()), ("push", "bulk"));
    assert!(push.windows().unwrap().is_none() && push.schedule("push").unwrap().is_none());
    let Doing::Enqueue(job) = push.doing().unwrap() else { panic!() };
    assert_eq!((job.kind.as_str(), job.queue.as_str(), job.max_attempts), ("send", "pushes", 3));
    let tell = bulks.remove("tell").unwrap();
    assert_eq!(tell.definition("tell").unwrap().effects, Effects::ExactlyOnce);
    let Doing::Emit(events) = tell.doing().unwrap() else { panic!() };
    assert_eq!(events.columns().collect::<Vec<_>>(), ["id", "name", "name"]);
    let post = bulks.remove("post").unwrap();
    let definition = post.definition("post").unwrap();
    assert_eq!((definition.effects, definition.sizing.rows_max), (Effects::AtLeastOncePerChunk, 1000));
}

#[test]
fn a_fingerprint_changes_with_what_is_done_and_with_nothing_else() {
    let fingerprint = |lines: &str| {
        let config = parse(&bulk(lines), Path::new("/"), |_| Some("t".to_owned())).unwrap();
        config.bulk.unwrap()["n"].definition("n").unwrap().fingerprint
    };
    let plain = fingerprint(APPLY);
    assert_eq!(plain.len(), 64);
    assert_eq!(
        plain,
        fingerprint(
            &format!("{APPLY}\nrate = 7\nwindows = [{{ from = \"1:00\", to = \"2:00\" }}]")
                .replace("\"1:", "\"01:")
                .replace("\"2:", "\"02:")
        )
    );
    let other = fingerprint("apply = \"insert into note select :bulk_id, id from chunk where true\"");
    let children = fingerprint("enqueue = { kind = \"a\" }");
    let server = fingerprint("http = { url = \"http://localhost\" }");
    let secret = fingerprint("http = { url = \"http://localhost\", headers = { A = \"${B}\" } }");
    assert_eq!(server, secret);
    let emit = |lines: &str| {
        let names = "aggregate_type = \"a\", aggregate_id = \"id\", event_type = \"t\"";
        fingerprint(&format!("emit = {{ {names}{lines} }}"))
    };
    let events = [emit(""), emit(", payload = [\"h\"]"), emit(", headers = { h = \"id\" }")];
    let all: BTreeSet<String> = [plain, other, children, server].into_iter().chain(events).collect();
    assert_eq!(all.len(), 7);
}

#[test]
fn events_that_cannot_be_emitted_are_refused_where_they_stand() {
    let long = "x".repeat(201);
    let text = format!(
        "{OVER_FILE}[bulk.n.emit]\naggregate_type = \"{long}\"\naggregate_id = \"nam\"\nevent_type = \"\"\n\
         payload = [\"id\", \"n\", \"text\"]\nheaders = {{ \"a b\" = \"id\" }}\n"
    );
    assert_faults(
        &text,
        &[
            ("4:18 the type of the aggregate", "docs/EVENTS.md"),
            ("5:16 there is no column nam in the file", "did you mean name?"),
            ("6:14 the type of the event", "docs/EVENTS.md"),
            ("7:23 there is no column text in the file", "columns are id, name, n"),
            ("8:21 the header \"a b\" has a name that brokers refuse", "docs/EVENTS.md"),
        ],
    );
    assert_faults(
        &bulk("emit = { aggregate_type = \"a\", aggregate_id = \"id\" }\nenqueue = { kind = \"k\" }"),
        &[("4:8 ", "event_type"), ("5:11 the bulk job n has both emit and enqueue", "keep one of the two")],
    );
}

#[test]
fn a_bulk_job_does_exactly_one_thing() {
    assert_faults(&bulk(""), &[("1:7 the bulk job n has no apply, enqueue", "add apply = ")]);
    assert_faults(
        &bulk(&format!("{APPLY}\nenqueue = {{ kind = \"a\" }}")),
        &[("5:11 the bulk job n has both apply and enqueue", "then = ")],
    );
    assert_faults(
        "[bulk.n]\napply = \"insert into note select id from chunk\"\n",
        &[
            ("1:7 the bulk job n has no source", "columns = "),
            ("1:7 the bulk job n has no key", "columns = "),
        ],
    );
    assert_faults(
        &bulk("http = { url = \"http://localhost\", headers = { Idempotency-Key = \"a\" } }"),
        &[("4:48 the header \"Idempotency-Key\"", "Idempotency-Key")],
    );
}

#[test]
fn sql_that_cannot_be_is_refused_where_it_stands() {
    let sources = [
        ("select id from member order by id limit :limit", "does not contain :cursor"),
        ("select id from member where id > :cursor order by id", "LIMIT :limit"),
        ("select id from member where id > :cursor limit :limit", "ORDER BY its key columns"),
        ("select id from member where id > :cursor order by name limit :limit", "its key is id"),
        ("select id from member where id > :cursor order by id desc limit :limit", "descending"),
        ("delete from member", "a source must be a SELECT"),
        ("select id from member where id > $1 order by id limit :limit", "parameters must have names"),
    ];
    for (source, words) in sources {
        let text = bulk(APPLY).replace(SOURCE, &format!("source = \"{source}\""));
        let found = faults(&text);
        assert!(found.len() == 1 && found[0].starts_with("2:10 the source is invalid: "), "{found:#?}");
        assert!(found[0].contains(words) && found[0].contains("docs/BULK.md"), "{found:#?}");
    }
    let applies = [
        ("insert into note select 1", "does not read the relation `chunk`"),
        ("update member set id = 1 from chunk where member.id = chunk.id", "sets id"),
        ("drop table chunk", "an apply statement must be an INSERT"),
        ("delete from note where id > :cursor", ":cursor is allowed only in the source"),
    ];
    for (apply, words) in applies {
        let found = faults(&bulk(&format!("apply = \"{apply}\"")));
        assert!(
            found.len() == 1 && found[0].starts_with("4:9 the apply statement is invalid: "),
            "{found:#?}"
        );
        assert!(found[0].contains(words), "{found:#?}");
    }
    assert_faults(&bulk(APPLY).replace("[\"id\"]", "[]"), &[("3:7 bulk.n.key is empty", "list")]);
}

#[test]
fn sizes_rates_and_windows_that_cannot_be_are_refused() {
    let cases = [
        ("rate = 0", "5:8 bulk.n.rate is 0", "from 0.001"),
        ("rate = \"fast\"", "5:8 bulk.n.rate is a text", "number"),
        ("duty = 0", "5:8 bulk.n.duty is 0", "from 0.001 to 1"),
        ("duty = 1.5", "5:8 bulk.n.duty is 1.5", "from 0.001 to 1"),
        (
            "chunk = { min = 10, max = 5 }",
            "5:27 a chunk cannot have at least 10 and at most 5",
            "set min to at most max",
        ),
        ("chunk = { max = 0 }", "5:17 bulk.n.chunk.max is 0", "from 1"),
        ("chunk = { target = \"0s\" }", "5:20 bulk.n.chunk.target = \"0s\"", "30s"),
        (
            "windows = [{ from = \"22:00\", to = \"22:00\" }]",
            "5:12 the window from 22:00:00 to 22:00:00 never opens",
            "change one of the times",
        ),
        (
            "windows = [{ from = \"22:00\", to = \"25:00\" }]",
            "5:35 bulk.n.windows[0].to = \"25:00\" is not a time of day",
            "22:00",
        ),
        (
            "windows = [{ from = \"22:00\", to = \"23:00\", days = [] }]",
            "5:51 bulk.n.windows[0].days is empty",
            "list",
        ),
        (
            "windows = [{ from = \"22:00\", to = \"23:00\", days = [\"monday\"] }]",
            "5:52 bulk.n.windows[0].days[0] is \"monday\"",
            "mon, tue",
        ),
        ("zone = \"Europe/Berlin\"", "5:8 zone has an effect only together with windows", "windows"),
        ("throttle = {}", "5:12 the throttle has no condition", "lock_waits = 10"),
        ("throttle = { lock_waits = 3 }", "5:14 lock_waits needs a PostgreSQL server", "sql and http"),
        (
            "throttle = { sql = \" -- none\" }",
            "5:20 the query of the throttle is invalid: the statement is empty",
            "returns true or 1",
        ),
        (
            "throttle = { sql = \"select :limit\" }",
            "5:20 the query of the throttle is invalid: it must not have parameters; remove :limit",
            "returns true or 1",
        ),
        ("throttle = { http = \"ftp://x\" }", "5:21 bulk.n.throttle.http", "http"),
        ("error_budget = -1", "5:16 bulk.n.error_budget is -1", "from 0"),
        ("tyep = \"a\"", "5:1 unknown key tyep", "type"),
        ("group = \"\"", "5:9 the group", "1 to 200"),
    ];
    for (lines, begins, remedy) in cases {
        assert_faults(&bulk(&format!("{APPLY}\n{lines}")), &[(begins, remedy)]);
    }
    assert_faults(
        &bulk(&format!(
            "{APPLY}\nwindows = [{{ from = \"22:00\", to = \"23:00\" }}]\nzone = \"Europe/Berlni\""
        )),
        &[("6:8 there is no time zone \"Europe/Berlni\"", "IANA")],
    );
}

#[test]
fn names_and_what_follows_must_agree() {
    let two = |first: &str, second: &str| {
        format!(
            "{}{}",
            bulk(&format!("{APPLY}\n{first}")),
            bulk(&format!("{APPLY}\n{second}")).replace("bulk.n]", "bulk.push]")
        )
    };
    assert_eq!(faults(&two("then = \"push\"", "")), Vec::<String>::new());
    assert_faults(&two("then = \"psh\"", ""), &[("5:8 there is no bulk job psh", "did you mean push?")]);
    assert_faults(&two("then = \"n\"", ""), &[("5:8 the end of n would start n again", "of the cycle")]);
    assert_faults(
        &two("then = \"push\"", "then = \"n\""),
        &[
            ("5:8 the end of n would start n", "of the cycle"),
            ("10:8 the end of push would start push", "of the cycle"),
        ],
    );
    assert_faults(
        &format!("[kinds.n]\nexec = {{ program = \"sh\" }}\n{}", bulk(APPLY)),
        &[("3:7 n is both a bulk job and a kind", "rename")],
    );
    assert_faults(
        &format!("{}{}", bulk(APPLY), bulk("enqueue = { kind = \"n\" }").replace("bulk.n]", "bulk.m]")),
        &[("8:20 n is a bulk job", "then = ")],
    );
    assert_faults(&bulk(APPLY).repeat(2), &[("5:7 n is defined twice; the first is in line 1", "rename")]);
}

#[test]
fn a_schedule_gives_all_that_its_sql_asks_for() {
    let scheduled = |schedule: &str| {
        let apply = "apply = \"insert into note select :bulk_id, :text, :nominal_at, id from chunk\"";
        bulk(&format!("{apply}\nschedule = {schedule}"))
    };
    let good = scheduled("{ every = \"1h\", payload = { text = \"hello\" } }");
    assert_eq!(faults(&good), Vec::<String>::new());
    assert_faults(
        &scheduled("{ every = \"1h\" }"),
        &[(
            "5:12 the schedule has no parameter \"text\", which the apply uses as :text",
            "payload = { text = … }",
        )],
    );
    assert_faults(
        &scheduled("{ payload = { text = 1 } }"),
        &[("5:12 the schedule has neither cron nor every", "every")],
    );
    assert_faults(
        &scheduled("{ every = \"1h\", payload = { text = 1 }, misfire_max = 3 }"),
        &[("5:66 misfire_max has an effect only", "misfire")],
    );
    assert_faults(
        &format!("{good}[[schedules]]\nname = \"n\"\nevery = \"1h\"\nkind = \"k\"\n"),
        &[("5:12 the schedule of this bulk job and another schedule", "rename the other")],
    );
}

#[test]
fn the_examples_of_the_docs_have_no_fault() {
    for page in ["docs/BULK.md", "README.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
        let page = std::fs::read_to_string(path).unwrap();
        let examples = page.split("```toml\n").skip(1).filter_map(|text| text.split("```").next());
        let examples: Vec<&str> = examples.filter(|text| text.contains("[bulk.")).collect();
        assert!(!examples.is_empty());
        for example in examples {
            let config = parse(example, Path::new("/"), |_| Some("s3cret".to_owned())).unwrap();
            assert!(!config.bulk_names().is_empty());
        }
    }
}

#[test]
fn sql_contains_no_value_of_the_environment() {
    for line in [
        "apply = \"insert into note select '${TOKEN}', id from chunk\"",
        "throttle = { sql = \"select '${TOKEN}'\" }",
    ] {
        let text = if line.starts_with("apply") { bulk(line) } else { bulk(&format!("{APPLY}\n{line}")) };
        let found = faults(&text);
        assert!(found.len() == 1 && found[0].contains("SQL cannot contain ${NAME}"), "{found:?}");
        assert!(!found[0].contains("s3cret"), "{found:?}");
    }
    let escaped = "apply = \"insert into note select '$${TOKEN}', id from chunk\"";
    assert_eq!(faults(&bulk(escaped)), Vec::<String>::new());
}

#[test]
fn no_schedule_and_no_task_has_the_name_of_a_bulk_job_as_its_kind() {
    let scheduled = |more: &str| {
        format!("{}[[schedules]]\nname = \"s\"\nevery = \"1h\"\nkind = \"n\"\n{more}", bulk(APPLY))
    };
    let fault =
        [("8:8 n is a bulk job: no worker would run the jobs of this schedule", "schedule = … in [bulk.n]")];
    assert_faults(&scheduled(""), &fault);
    assert_faults(&scheduled("group = \"n\"\nmax_attempts = 3\n"), &fault);
    // With the same queue, group and attempts, the jobs are runs.
    assert_faults(&scheduled("queue = \"bulk\"\ngroup = \"n\"\n"), &[]);

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("d.toml"), "name = \"d\"\n[tasks.a]\nkind = \"n\"\n").unwrap();
    let text = format!("{}[batch.d]\nfile = \"d.toml\"\n", bulk(APPLY));
    let faults = parse(&text, folder.path(), |_| None).unwrap_err();
    assert!(faults.len() == 1 && faults[0].what.contains("write bulk = \"n\" instead"), "{faults:?}");
}
