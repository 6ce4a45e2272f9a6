//! Tests of tokens on the command line.

use std::fs::File;

use crate::support::{Place, on_each_store};

on_each_store! {
    a_token_is_shown_once_and_listed_without_its_secret,
    a_token_is_limited_to_queues_and_kinds,
    a_token_is_revoked_by_its_prefix,
    a_token_that_cannot_be_is_refused,
    a_token_that_nobody_can_read_is_not_created,
}

fn a_token_is_shown_once_and_listed_without_its_secret(place: Place) {
    let made = place.run(&["tokens", "create", "ci", "--role", "operator", "--expires", "90d"]).ok();
    let token = made.out.trim();
    assert!(token.starts_with("mp_") && token.len() == 55, "stdout is not only the token: {token}");
    assert!(made.err.contains("ci (operator)") && made.err.contains("the first one"), "{}", made.err);
    let list = place.run(&["tokens", "list", "--json"]).ok();
    // `mp_`, the prefix, `_`, and the secret, which may contain `_`.
    let (prefix, secret) = token["mp_".len()..].split_once('_').unwrap();
    let table = place.run(&["tokens", "list"]).ok().out;
    for text in [&list.out, &table] {
        assert!(!text.contains(secret) && text.contains(prefix), "{text}");
    }
    let list = list.json();
    assert_eq!((&list[0]["name"], &list[0]["role"]), (&"ci".into(), &"operator".into()));
    assert_eq!(list[0]["standing"], "valid");
    assert!(table.contains("expires in 90 d") && table.contains("never"), "{table}");
    let later = ["tokens", "create", "late", "--role", "viewer", "--starts", "2999-01-01T00:00:00Z"];
    let later = place.run(&later).ok().err;
    assert!(later.contains("valid from 2999-01-01T00:00:00Z until it is revoked"), "{later}");
    let who = place.tamper("select who || ' ' || what from milepost.audit order by pos limit 1");
    assert!(who.ends_with(" token.create") && who.contains('@'), "{who}");
}

fn a_token_is_limited_to_queues_and_kinds(place: Place) {
    place.run(&["tokens", "create", "all", "--role", "viewer"]).ok();
    assert!(!place.run(&["tokens", "list"]).ok().out.contains("LIMITED TO"));
    let limits = ["--queue", "mail*", "--kind", "mail.*", "--kind", "news"];
    let create = [&["tokens", "create", "mailer", "--role", "operator"], limits.as_slice()].concat();
    let made = place.run(&create).ok();
    assert!(
        made.err.contains("mailer (operator, limited to queues mail*; kinds mail.*, news)"),
        "{}",
        made.err
    );
    let list = place.run(&["tokens", "list", "--json"]).json();
    assert_eq!(list[0].get("scope"), None);
    assert_eq!(list[1]["scope"], serde_json::json!({"queues": ["mail*"], "kinds": ["mail.*", "news"]}));
    let table = place.run(&["tokens", "list"]).ok().out;
    assert!(table.contains("LIMITED TO") && table.contains("queues mail*; kinds mail.*, news"), "{table}");
    let refused = place.run(&["tokens", "create", "x", "--role", "viewer", "--queue", "a*b"]);
    assert!(
        refused.status == 1 && refused.err.contains("a `*` can only be its last character"),
        "{}",
        refused.err
    );
}

fn a_token_is_revoked_by_its_prefix(place: Place) {
    let made = place.run(&["tokens", "create", "ci", "--role", "worker", "--json"]).json();
    let (token, prefix) = (made["token"].as_str().unwrap(), made["prefix"].as_str().unwrap());
    let whole = place.run(&["tokens", "revoke", token]);
    assert!(whole.status == 1 && !whole.err.contains(token), "a secret is not repeated: {}", whole.err);
    let revoked = place.run(&["tokens", "revoke", prefix]).ok();
    assert_eq!(revoked.out, format!("token {prefix} is revoked\n"));
    assert!(revoked.err.contains("no token is left"), "{}", revoked.err);
    let again = place.run(&["tokens", "revoke", prefix]).ok();
    assert_eq!(again.out, format!("token {prefix} was revoked already\n"));
    assert_eq!(place.run(&["tokens", "list", "--json"]).json()[0]["standing"], "revoked");
    place.run(&["tokens", "create", "ci", "--role", "worker"]).ok();
}

fn a_token_that_cannot_be_is_refused(place: Place) {
    place.run(&["tokens", "create", "ci", "--role", "viewer"]).ok();
    let taken = place.run(&["tokens", "create", "ci", "--role", "admin"]);
    assert!(taken.status == 1 && taken.err.contains("there is already a token \"ci\""), "{}", taken.err);
    let nobody = place.run(&["tokens", "revoke", "aaaaaaaa"]);
    assert!(nobody.status == 1 && nobody.err.contains("no token with prefix"), "{}", nobody.err);
    for args in [["x", "--role", "root"], ["x", "--expires", "0s"], ["x", "--starts", "soon"]] {
        let ran = place.run(&[&["tokens", "create"], args.as_slice(), &["--role", "viewer"]].concat());
        assert_eq!(ran.status, 2, "{}", ran.err);
    }
    let over = ["tokens", "create", "x", "--role", "viewer", "--starts", "2020-05-01T09:00:00Z"];
    let ran = place.run(&[over.as_slice(), &["--expires", "1d"]].concat());
    assert!(ran.status == 1 && ran.err.contains("expired at 2020-05-02"), "{}", ran.err);
    place.run(&over).ok();
}

fn a_token_that_nobody_can_read_is_not_created(place: Place) {
    let create = ["tokens", "create", "ci", "--role", "viewer"];
    let null = File::options().write(true).open("/dev/null").unwrap();
    let unread = place.command(&create).stdout(null).output().unwrap();
    let words = String::from_utf8(unread.stderr).unwrap();
    assert!(unread.status.code() == Some(1) && words.contains("the token would be lost"), "{words}");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let unwritten = place.command(&create).stdout(full).output().unwrap();
    let words = String::from_utf8(unwritten.stderr).unwrap();
    assert!(unwritten.status.code() == Some(1) && words.contains("is revoked"), "{words}");
    let list = place.run(&["tokens", "list", "--json"]).json();
    let standings: Vec<_> = list.as_array().unwrap().iter().map(|token| &token["standing"]).collect();
    assert_eq!(standings, ["revoked"]);
}
