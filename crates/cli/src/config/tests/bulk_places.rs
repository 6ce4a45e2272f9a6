//! Tests of bulk jobs whose targets are in a file or in another database.

use super::bulk::{APPLY, OVER_FILE, SOURCE, bulk};
use super::*;
use milepost::bulk::Effects;

#[test]
fn a_bulk_job_over_a_file_has_columns_instead_of_a_source() {
    let apply = "apply = \"insert into note select :bulk_id, id, :text from chunk\"\n";
    let config = parse(&format!("{OVER_FILE}{apply}"), Path::new("/"), |_| None).unwrap();
    let entry = &config.bulk.unwrap()["n"];
    let definition = entry.definition("n").unwrap();
    let names: Vec<&str> = definition.columns.as_ref().unwrap().names().collect();
    assert_eq!(names, ["id", "name"]);
    for dialect in [Dialect::Postgres, Dialect::Sqlite] {
        let (source, key) = entry.targets(dialect).unwrap();
        assert!(source.contains("bulk_target") && key == ["n"], "{source}");
        let missing = entry
            .check_parameters(&milepost_core::bulk::parameters::Parameters::default(), dialect)
            .unwrap_err();
        assert!(missing.to_string().contains("no \"text\", which the SQL of the bulk job uses"), "{missing}");
    }
    let other = OVER_FILE.replace("name = \"text\"", "name = \"json\"");
    let other = parse(&format!("{other}{apply}"), Path::new("/"), |_| None).unwrap();
    assert_ne!(other.bulk.unwrap()["n"].definition("n").unwrap().fingerprint, definition.fingerprint);
}

#[test]
fn what_a_bulk_job_over_a_file_cannot_be_is_refused() {
    assert_faults(
        &format!("{OVER_FILE}{SOURCE}\nkey = [\"id\"]\n{APPLY}\n"),
        &[
            ("3:10 the bulk job n has both columns and source", "keep one of the two"),
            ("4:7 the bulk job n has both columns and key", "keep one of the two"),
        ],
    );
    assert_faults(
        &format!("{OVER_FILE}{APPLY}\nschedule = {{ every = \"1h\" }}\n"),
        &[("4:12 n reads its targets from a file, but a schedule provides no file", "--from FILE")],
    );
    assert_faults(
        &format!("[bulk.n]\ncolumns = {{ \"a'b\" = \"text\", N = \"text\" }}\n{APPLY}\n"),
        &[
            ("2:13 \"a'b\" cannot be the name of a column", "the file's header"),
            ("2:29 \"N\" is reserved for the number of the row", "the file's header"),
        ],
    );
    assert_faults(&format!("[bulk.n]\ncolumns = {{ a = \"date\" }}\n{APPLY}\n"), &[("2:17 ", "integer")]);
    assert_faults(
        &format!("[bulk.n]\ncolumns = {{}}\n{APPLY}\n"),
        &[("2:11 the columns are empty", "list the columns")],
    );
    let first = bulk(&format!("{APPLY}\nthen = \"letter\""))
        + &OVER_FILE.replace("[bulk.n]", "[bulk.letter]")
        + APPLY;
    assert_faults(&first, &[("5:8 letter reads its targets from a file", "a source and a key")]);
}

#[test]
fn sql_is_that_of_the_store() {
    let postgres: StoreAddress = "postgres://localhost/app".parse().unwrap();
    let apply = "apply = '''insert into note select 'a'::text || $$b;c$$ from chunk'''";
    let text = bulk(apply);
    let read = |named, text: &str| super::super::parse(text, Path::new("/"), named, |_| None).is_ok();
    assert!(read(Some(&postgres), &text));
    assert!(!read(None, &text), "a semicolon, in SQLite");
    assert!(read(None, &format!("store = \"postgres://localhost/app\"\n{text}")));
    let throttle = bulk(&format!(
        "{APPLY}\nthrottle = {{ replica_lag = \"5s\", lock_waits = 3, oldest_snapshot = \"10m\" }}"
    ));
    assert!(read(Some(&postgres), &throttle) && !read(None, &throttle), "of a server");
    assert!(!read(Some(&StoreAddress::default()), &format!("store = \"postgres://localhost/app\"\n{text}")));
}

pub(super) const SHOP: &str = "[database.shop]\nurl = \"postgres://app:${TOKEN}@db.shop.internal/shop\"\n";

#[test]
fn targets_can_be_on_a_database_that_the_file_names() {
    let apply = "apply = '''insert into note select 'a'::text || $$b;c$$ from chunk'''";
    let lines = format!("{apply}\ndatabase = \"shop\"\nthrottle = {{ lock_waits = 3 }}");
    assert_eq!(
        faults(&(bulk(&lines) + SHOP)),
        Vec::<String>::new(),
        "PostgreSQL's SQL beside a SQLite store"
    );
    assert_eq!(faults(SHOP), Vec::<String>::new(), "an unused database is not an error");
    let read = |text: &str| parse(text, Path::new("/"), |_| Some("s3cret".to_owned())).unwrap();
    assert!(!format!("{:?}", read(&(bulk(&lines) + SHOP))).contains("s3cret"));
    let definition = |text: &str| read(text).bulk.unwrap()["n"].definition("n").unwrap();
    let own = definition(&bulk(APPLY));
    let there = definition(&(bulk(&format!("{APPLY}\ndatabase = \"shop\"")) + SHOP));
    assert_eq!((own.effects, there.effects), (Effects::ExactlyOnce, Effects::AtLeastOncePerChunk));
    assert_ne!(own.fingerprint, there.fingerprint, "cursors are not shared between databases");
}

#[test]
fn a_database_that_cannot_be_is_refused_and_its_url_is_not_told() {
    let named = |name: &str| bulk(&format!("{APPLY}\ndatabase = {name}"));
    let (alone, other) = (named("\"shop\""), named("\"shpo\"") + SHOP);
    assert_faults(&alone, &[("5:12 there is no database shop in this file", "[database.shop]")]);
    assert_faults(&other, &[("5:12 there is no database shpo in this file", "did you mean shop?")]);
    let staged = format!("[bulk.n]\ncolumns = {{ id = \"integer\" }}\n{APPLY}\ndatabase = \"shop\"\n{SHOP}");
    assert_faults(&staged, &[("4:12 the rows of a file are staged in the store", "remove database")]);
    assert_faults(&(named("7") + SHOP), &[("5:12 bulk.n.database is a whole number", "string in quotes")]);
    let url = |url: &str| format!("[database.shop]\nurl = \"{url}\"\n");
    for (given, why) in [
        ("mysql://app:pw@db/shop", "it does not begin with postgres://"),
        ("postgres://app:pw@db:port/shop", "cannot be read"),
        ("postgres://app:pw@db", "it names no database"),
        (
            "postgres://app:pw@pooler/shop?pooler=transaction&direct=db:5432",
            "the address of the server itself",
        ),
        ("${TOKEN}", ""),
    ] {
        let found = faults(&url(given));
        assert!(found.len() == 1 && found[0].contains("is not a PostgreSQL database"), "{found:?}");
        assert!(found[0].starts_with("2:7 database.shop.url") && found[0].contains(why), "{found:?}");
        assert!(!found[0].contains("pw") && !found[0].contains("s3cret"), "{found:?}");
    }
    assert_faults("[database.shop]\n", &[("1:1 database.shop has no url", "postgres://")]);
    assert_faults(&(url("postgres://db/shop") + "usr = 1\n"), &[("3:1 unknown key usr", "url")]);
}
