//! Tests of each section: accepted settings and rejected ones.

use super::*;

#[test]
fn a_good_file_is_read_in_full() {
    let text = r#"
        store = "jobs.db"
        [worker]
        name = "w"
        queues = ["mail", "slow"]
        concurrency = 4
        lease = "1m 30s"
        poll_interval = "250ms"
        drain = "0s"
        [kinds.mail]
        http = { url = "https://mail.internal/send", headers = { Authorization = "Bearer ${TOKEN}" }, timeout = "5s" }
        timeout = "10s"
        backoff = { base = "2s", cap = "1m", jitter = 0 }
        [kinds.report.exec]
        program = "sh"
        args = ["-c", "echo $${HOME}"]
        env = { A = "b" }
        inherit_env = true
        cwd = "/"
        kill_grace = "2s"
    "#;
    let config = parse(text, Path::new("/etc"), |_| Some("t0ken".to_owned())).unwrap();
    assert_eq!(config.store, Some(StoreAddress::Sqlite("/etc/jobs.db".into())));
    let mut options = milepost::WorkerOptions::default();
    config.worker.apply(&mut options);
    assert_eq!((options.name.as_str(), options.concurrency), ("w", 4));
    assert_eq!((options.queues, options.lease.as_secs()), (vec!["mail".to_owned(), "slow".to_owned()], 90));
    let mut kinds = config.kinds;
    let mail = kinds.remove("mail").unwrap();
    assert_eq!((mail.timeout().unwrap().as_secs(), mail.backoff.policy().base.as_secs()), (10, 2));
    let Some(Executor::Http(http)) = mail.executor() else { panic!() };
    let http = http.config(&config.secrets);
    assert_eq!((http.headers["Authorization"].as_str(), http.timeout.as_secs()), ("Bearer t0ken", 5));
    let Some(Executor::Exec(exec)) = kinds.remove("report").unwrap().executor() else { panic!() };
    let exec = exec.config(Path::new("/etc"), &config.secrets);
    assert!(exec.program.is_absolute() && exec.inherit_env && exec.kill_grace.as_secs() == 2);
    assert_eq!((exec.args[1].as_str(), exec.env["A"].as_str()), ("echo ${HOME}", "b"));
}

#[test]
fn an_empty_file_has_no_fault() {
    assert!(faults("").is_empty());
}

#[test]
fn a_kind_has_exactly_one_executor() {
    assert_faults(
        "[kinds.a]\ntimeout = \"1s\"\n",
        &[("1:8 the kind a has neither http nor exec", "add http = ")],
    );
    assert_faults(
        &format!("{KIND}http = {{ url = \"http://localhost\" }}\n"),
        &[("3:8 the kind a has both http and exec", "keep one")],
    );
    assert_faults("[kinds.a]\nexec = {}\n", &[("2:8 kinds.a.exec has no program", "add program")]);
    assert_faults("[kinds.a.http]\ntimeout = \"1s\"\n", &[("1:1 kinds.a.http has no url", "https://")]);
    assert_faults(
        "[kinds.\"\"]\nexec = { program = \"sh\" }\n",
        &[("1:8 the kind \"\" is invalid", "1 to 200 bytes")],
    );
}

#[test]
fn a_program_must_be_there_and_executable() {
    assert_faults(
        "[kinds.a]\nexec = { program = \"no-such-program\" }\n",
        &[("2:20 kinds.a.exec.program = \"no-such-program\" is not a program that can be run", "PATH")],
    );
    assert_faults("[kinds.a]\nexec = { program = \"/etc/passwd\" }\n", &[("2:20", "PATH")]);
    assert_faults("[kinds.a]\nexec = { program = \"echo hello\" }\n", &[("2:20", "arguments go into args")]);
    assert_faults(
        &KIND.replace(" }", ", cwd = \"/no/such\" }"),
        &[("2:32 kinds.a.exec.cwd = \"/no/such\" is not a folder", "folder")],
    );
}

#[test]
fn arguments_and_variables_must_be_ones_that_a_process_can_receive() {
    let argument = "remove the NUL character";
    assert_faults(
        &KIND.replace(" }", ", args = [\"a\", \"b\\u0000\"] }"),
        &[(
            "2:39 kinds.a.exec.args[1] is not a text that a program can receive: it contains a NUL",
            argument,
        )],
    );
    assert_faults(
        &KIND.replace(" }", ", env = { A = \"b\\u0000\" } }"),
        &[("2:38 kinds.a.exec.env.A is not a text that a program can receive: it contains a NUL", argument)],
    );
    for name in ["", "A=B", "A\\u0000"] {
        assert_faults(
            &KIND.replace(" }", &format!(", env = {{ \"{name}\" = \"b\" }} }}")),
            &[("2:34", "write a name such as MAIL_HOST")],
        );
    }
}

#[test]
fn a_url_must_be_one_that_can_be_called() {
    for url in ["mail.internal/send", "ftp://mail.internal", "https://", "http://ada:s3cret@:x"] {
        assert_faults(
            &format!("[kinds.a]\nhttp = {{ url = \"{url}\" }}\n"),
            &[("2:16 kinds.a.http.url is not a valid URL here", "https://")],
        );
    }
    assert_faults(
        "[kinds.a.http]\nurl = \"http://localhost\"\nheaders = { \"a b\" = \"x\", Idempotency-Key = \"x\", Bad = \"s3cret\\n\" }\n",
        &[
            ("3:13 \"a b\" is not a valid header name", "X-Team"),
            ("3:26 the header \"Idempotency-Key\" is set", ""),
            ("3:49 the value of the header \"Bad\"", "one line"),
        ],
    );
}

#[test]
fn a_url_of_a_network_of_ones_own_must_be_allowed() {
    let words = "10.1.2.3 is not a public address; to allow it, add its network to `allow_networks`";
    let kind = |rest: &str| format!("[kinds.a.http]\nurl = \"http://10.1.2.3/send\"\n{rest}");
    assert_faults(&kind(""), &[(&format!("2:7 {words}"), "allow_networks = [\"10.1.2.3/32\"]")]);
    assert_faults(&kind("allow_networks = [\"10.2.0.0/16\"]\n"), &[(&format!("2:7 {words}"), "")]);
    assert_faults(
        &kind("allow_networks = [\"10.0.0.1/8\"]\n"),
        &[("3:18 10.0.0.1/8 is not a network; the network is 10.0.0.0/8", "allow_networks = [")],
    );
    assert_faults(&kind("allow_networks = [\"10.0.0.0/8\"]\n"), &[]);
}

#[test]
fn a_redis_is_read_and_its_password_is_not_told() {
    let text = format!(
        "{KIND}[redis]\nurl = \"redis://:${{TOKEN}}@cache/1\"\nprefix = \"jobs:\"\ntimeout = \"50ms\"\n"
    );
    assert_eq!(faults(&text), Vec::<String>::new());
    let config = parse(&text, Path::new("/"), |_| Some("s3cret".to_owned())).unwrap();
    assert!(!format!("{config:?}").contains("s3cret"));
    let (url, options) = config.redis.unwrap().config();
    assert_eq!((url.as_str(), options.prefix.as_str()), ("redis://:s3cret@cache/1", "jobs:"));
    assert_eq!(options.timeout, std::time::Duration::from_millis(50));
    assert_faults(
        "[redis]\nurl = \"http://:${TOKEN}@cache\"\nprefix = \"a b\"\ntimeout = \"0s\"\n",
        &[
            ("2:7 redis.url, filled in from the environment, is not a Redis address", "redis://HOST"),
            ("3:10 the prefix cannot be used for keys", "without spaces"),
            ("4:11 redis.timeout = \"0s\" is not a valid duration here", "30s"),
        ],
    );
    assert_faults(
        "[redis]\nurl = \"rediss://ada:s3cret@cache/#insecure\"\n",
        &[("2:7 redis.url is not a Redis address: ", "redis://HOST")],
    );
    assert_faults("[redis]\nprefix = \"a:\"\n", &[("1:1 redis has no url", "redis://HOST")]);
}

#[test]
fn a_store_must_be_an_address_or_a_path_and_its_password_is_not_told() {
    assert_faults(
        "store = \"mysql://ada:s3cret@db/app\"\n",
        &[("1:9 store is not a store address", "postgres://USER")],
    );
    assert_faults("store = \"\"\n", &[("1:9 store is not a store address", "path")]);
    assert_faults(
        "store = \"mysql://ada:${TOKEN}@db/app\"\n",
        &[("1:9 store, filled in from the environment, is not a store address", "path")],
    );
}

#[test]
fn schedules_are_read_in_full() {
    let text = r#"
        [[schedules]]
        name = "nightly"
        cron = "0 3 * * *"
        zone = "Europe/Berlin"
        kind = "report"
        payload = { days = 1 }
        queue = "slow"
        priority = 4
        max_attempts = 3
        group = "reports"
        timeout = "5m"
        misfire = "all"
        misfire_max = 7
        misfire_grace = "2m"
        [[schedules]]
        name = "poll"
        every = "10m"
        kind = "poll"

        [[schedules]]
        name = "settlement"
        cron = "@daily"
        dag = "settlement"
        input = { country = "DE" }
    "#;
    let config = parse(text, Path::new("/"), |_| None).unwrap();
    let schedules = config.schedules.unwrap();
    let nightly = schedules[0].schedule().unwrap();
    let (_, job) = nightly.makes.columns();
    assert_eq!((nightly.spec.zone_name(), job.payload.get()), ("Europe/Berlin", r#"{"days":1}"#));
    assert_eq!((job.queue.as_str(), job.max_attempts), ("slow", 3));
    assert_eq!(job.group.as_deref(), Some("reports"));
    assert_eq!((nightly.misfire.max(), nightly.misfire_grace.as_secs()), (Some(7), 120));
    let poll = schedules[1].schedule().unwrap();
    let (dag, job) = poll.makes.columns();
    assert_eq!((poll.spec.to_string(), dag, job.payload.get()), ("@every 10m".to_owned(), None, "null"));
    let settlement = schedules[2].schedule().unwrap();
    let (dag, columns) = settlement.makes.columns();
    assert_eq!((dag, columns.payload.get()), (Some("settlement"), r#"{"country":"DE"}"#));
    assert!(
        parse("", Path::new("/"), |_| None).unwrap().schedules.is_none(),
        "the file does not contain them"
    );
}

#[test]
fn schedules_that_could_not_tick_are_refused() {
    let schedule = |lines: &str| format!("[[schedules]]\nname = \"n\"\nkind = \"k\"\n{lines}\n");
    let cases = [
        ("", "1:1 the schedule has neither cron nor every", "every = \"10m\""),
        ("cron = \"@daily\"\nevery = \"1m\"", "5:9 the schedule has both", "keep one"),
        ("cron = \"0 0 30 2 *\"", "4:8 the cron expression \"0 0 30 2 *\" never fires", "preview"),
        ("cron = \"61 * * * *\"", "4:8 the minute field", "preview"),
        (
            "cron = \"@daily\"\nzone = \"Europe/Berlni\"",
            "5:8 there is no time zone \"Europe/Berlni\"",
            "IANA",
        ),
        ("every = \"1500ms\"", "4:9 the interval", "\"30s\""),
        ("every = \"1m\"\nzone = \"UTC\"", "5:8 an interval has no time zone", "remove zone"),
        ("every = \"1m\"\nmisfire = \"al\"", "5:11 schedules[0].misfire is \"al\"", "skip, once, all"),
        ("every = \"1m\"\nmisfire_max = 5", "5:15 misfire_max has an effect only", "misfire = \"all\""),
        ("every = \"1m\"\npriority = 5", "5:12 schedules[0].priority is 5", "from 1 to 4"),
        ("every = \"1m\"\nmis_fire = \"all\"", "5:1 unknown key mis_fire", "misfire"),
    ];
    for (lines, begins, remedy) in cases {
        assert_faults(&schedule(lines), &[(begins, remedy)]);
    }
    let cases = [
        ("every = \"1m\"", "1:1 the schedule has neither kind nor dag", "dag = \"orders\""),
        ("every = \"1m\"\nkind = \"k\"\ndag = \"d\"", "5:7 the schedule has both kind and dag", "keep one"),
        ("every = \"1m\"\ndag = \"d\"\npayload = 1", "5:11 payload is a setting of jobs", "write input"),
        ("every = \"1m\"\ndag = \"d\"\nqueue = \"q\"", "5:9 queue is a setting of jobs", "tasks of the DAG"),
        ("every = \"1m\"\nkind = \"k\"\ninput = 1", "5:9 input is a setting of batches", "write payload"),
        (
            "every = \"1m\"\ndag = \"d\"\ninput = { a = \"$${ nonsense( }\" }",
            "5:9 the input cannot be used",
            "$${ tick.date }",
        ),
    ];
    for (lines, begins, remedy) in cases {
        assert_faults(&format!("[[schedules]]\nname = \"n\"\n{lines}\n"), &[(begins, remedy)]);
    }
    let twice = format!("{0}{0}", schedule("every = \"1m\""));
    assert_faults(&twice, &[("6:8 there is another schedule with the name n", "rename one")]);
}

#[test]
fn limits_and_retention_are_read_in_full() {
    let text = r#"
        [[limits]]
        kind = "mail"
        rate = "10/s"
        burst = 20
        [[limits]]
        group = "tenant:*"
        concurrency = 3
        [retention]
        succeeded = "2d"
        failed = "forever"
    "#;
    let config = parse(text, Path::new("/"), |_| None).unwrap();
    let limits: Vec<_> = config.limits.unwrap().iter().map(LimitEntry::limit).collect();
    let rate = limits[0].rate.unwrap();
    assert_eq!(
        (limits[0].target.to_string(), rate.per_second, rate.burst),
        ("kind mail".to_owned(), 10.0, 20)
    );
    assert_eq!((limits[1].target.name(), limits[1].slots, limits[1].rate), ("tenant:*", Some(3), None));
    let policy = config.retention.policy();
    assert_eq!((policy.succeeded, policy.failed), (Keep::days(2), Keep::Forever));
    assert_eq!(policy.canceled, RetentionPolicy::default().canceled);
}

#[test]
fn limits_and_periods_that_cannot_be_are_refused() {
    let cases = [
        ("[[limits]]\nrate = \"1/s\"", "1:1 the limit has neither", "tenant:*"),
        ("[[limits]]\nkind = \"a\"\ngroup = \"b\"\nrate = \"1/s\"", "1:1 the limit has both", "kind"),
        ("[[limits]]\nkind = \"a\"", "1:1 it has no effect", "LIMITS.md"),
        ("[[limits]]\nkind = \"a\"\nconcurrency = 2", "1:1 a kind cannot have a concurrency", "LIMITS.md"),
        ("[[limits]]\nkind = \"a\"\nrate = \"fast\"", "3:8 limits[0].rate = \"fast\" is not a rate", "10/s"),
        ("[[limits]]\ngroup = \"a\"\nconcurrency = 2\nburst = 3", "4:9 burst has an effect only", "rate"),
        ("[retention]\nfailed = \"always\"", "2:10 retention.failed = \"always\" is not a period", "forever"),
    ];
    for (text, begins, remedy) in cases {
        assert_faults(text, &[(begins, remedy)]);
    }
    let twice = "[[limits]]\nkind = \"a\"\nrate = \"1/s\"\n".repeat(2);
    assert_faults(&twice, &[("4:1 kind a has another limit already", "in one limit")]);
}

#[test]
fn a_text_with_a_nul_character_is_refused_wherever_it_is() {
    let nul = r#"
        [worker]
        name = "a\u0000b"
        [kinds.echo]
        exec = { program = "cat" }
        [[schedules]]
        name = "nightly"
        every = "1h"
        kind = "echo"
        payload = { "k\u0000" = ["x", "\u0000"] }
        [bulk.letters]
        source = "select id from member where id > :cursor order by id limit :limit -- \u0000"
        key = ["id"]
        apply = "insert into note select id from chunk"
        type = "a\u0000"
        [subscription.s]
        null = {}
        aggregate_types = ["t", "\u0000"]
    "#;
    let found = faults(nul);
    let at: Vec<&str> = found.iter().filter_map(|fault| fault.split(' ').next()).collect();
    assert_eq!(at, ["3:16", "10:19", "12:18", "15:16", "18:33"], "{found:#?}");
    assert!(found.iter().all(|fault| fault.contains("NUL")), "{found:#?}");
}
