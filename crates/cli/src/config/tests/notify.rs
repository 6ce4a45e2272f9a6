//! Tests of `[notify.NAME]`.

use std::time::Duration;

use milepost_core::alert::{AlertRule, Severity};

use super::*;

#[test]
fn targets_are_read_in_full() {
    let text = "[notify.oncall]\nslack = \"https://hooks.example.com/services/${TOKEN}\"\nmin_severity = \"error\"\n\
                rules = [\"queue_paused\", \"jobs_failed\"]\nfor = \"5m\"\nrepeat_after = \"2h\"\nconsole = \"https://jobs.example.org\"\n\
                [notify.ops]\nsmtp = \"smtps://milepost:${TOKEN}@smtp.example.com\"\nfrom = \"milepost@example.com\"\nto = [\"ops@example.com\"]\n";
    let config = parse(text, Path::new("/"), |_| Some("s3cretsecret".to_owned())).unwrap();
    let oncall = config.notify["oncall"].target("oncall").unwrap();
    assert_eq!(oncall.rules.rules, [AlertRule::QueuePaused, AlertRule::JobsFailed]);
    assert_eq!(oncall.rules.min_severity, Severity::Error);
    assert_eq!(
        (oncall.rules.hold, oncall.rules.repeat_after),
        (Duration::from_secs(300), Duration::from_secs(7_200))
    );
    assert_eq!(oncall.channel.place(), "https://hooks.example.com");
    let ops = config.notify["ops"].target("ops").unwrap();
    assert_eq!(ops.rules.hold, Duration::from_secs(60));
    assert!(!format!("{:?} {ops:?}", config.notify).contains("s3cret"));
}

#[test]
fn a_target_that_cannot_be_used_is_refused_at_its_place() {
    let with = |lines: &str| format!("[notify.oncall]\n{lines}\n");
    let slack = "slack = \"https://hooks.example.com/x\"";
    let cases = [
        ("for = \"1m\"", "1:9 the target oncall has no channel", "webhook, slack and smtp"),
        (
            "slack = \"https://a.example\"\nwebhook = \"https://b.example\"",
            "2:9 the target oncall has several channels: webhook, slack",
            "separate target",
        ),
        ("webhook = \"https://b.example\"", "2:11 secrets of the target oncall cannot be used", "get-alerts"),
        (
            "slack = \"http://10.1.2.3/x\"",
            "2:9 slack of the target oncall cannot be used: 10.1.2.3",
            "get-alerts",
        ),
        ("slack = \"gopher://${TOKEN}\"", "2:9 slack of the target oncall cannot be used", "get-alerts"),
        (
            "smtp = \"smtps://mail.example\"\nfrom = \"me\"\nto = [\"ops@example.com\"]",
            "3:8 from of the target oncall cannot be used: \"me\" is not a mail address",
            "get-alerts",
        ),
        (
            &format!("{slack}\nto = [\"ops@example.com\"]"),
            "3:6 to of the target oncall has no effect",
            "remove to",
        ),
        (
            &format!("{slack}\nrules = [\"queue_pause\"]"),
            "3:10 there is no rule \"queue_pause\"",
            "queue_paused",
        ),
        (
            &format!("{slack}\nmin_severity = \"fatal\""),
            "3:16 notify.oncall.min_severity is \"fatal\"",
            "warning",
        ),
        (&format!("{slack}\nfor = \"soon\""), "3:7 notify.oncall.for", ""),
    ];
    for (lines, begins, remedy) in cases {
        assert_faults(&with(lines), &[(begins, remedy)]);
    }
}
