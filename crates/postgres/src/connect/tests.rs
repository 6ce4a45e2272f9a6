#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use super::*;

#[test]
fn a_url_says_that_a_pooler_is_in_between_and_where_the_server_is() {
    let url = "postgres://ada:s3cret@pooler:6432/app?sslmode=prefer&pooler=transaction&direct=db:5432";
    let (rest, options) = read_own(url, PostgresOptions::default()).unwrap();
    assert_eq!(rest, "postgres://ada:s3cret@pooler:6432/app?sslmode=prefer");
    assert_eq!(options.wake, WakeMode::Poll);
    assert_eq!(options.direct.as_deref(), Some("postgres://ada:s3cret@db:5432/app?sslmode=prefer"));
    let (rest, options) = read_own("postgres://db/app", PostgresOptions::default()).unwrap();
    assert_eq!((rest.as_str(), options.wake, options.direct), ("postgres://db/app", WakeMode::Listen, None));
}

#[test]
fn only_another_machine_with_an_undecided_encryption_is_warned_about() {
    let warned = |url: &str| can_be_read_on_the_way(&PgConnectOptions::from_str(url).unwrap());
    for url in
        ["postgres://db/app", "postgres://10.0.0.7/app?sslmode=prefer", "postgres://db/app?sslmode=allow"]
    {
        assert!(warned(url), "{url}");
    }
    for url in [
        "postgres://localhost/app",
        "postgres://127.0.0.2/app",
        "postgres://[::1]/app",
        "postgres://ada@localhost/app?host=/run/postgresql",
        "postgres://db/app?sslmode=disable",
        "postgres://db/app?sslmode=verify-full",
        "postgres://db/app?sslmode=require",
    ] {
        assert!(!warned(url), "{url}");
    }
}

#[test]
fn parameters_that_make_no_sense_are_refused_without_the_password() {
    for parameters in
        ["pooler=session", "direct=db:5432", "pooler=transaction&direct=db", "pooler=transaction&direct=:1"]
    {
        let url = format!("postgres://ada:s3cret@db/app?{parameters}");
        let why = check_url(&url).unwrap_err();
        assert!(!why.contains("s3cret"), "{why}");
        read(&url, PostgresOptions::default()).unwrap_err();
    }
}
