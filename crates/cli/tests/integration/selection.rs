//! Tests of how a command selects its store and its configuration.

use std::collections::HashSet;

use crate::support::{Place, Ran, on_each_store};

on_each_store! {
    every_command_uses_the_store_of_the_configuration,
}

/// Runs a command without `MILEPOST_STORE`.
fn unnamed(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = place.command(args);
    command.env_remove("MILEPOST_STORE").envs(variables.iter().copied());
    Ran::from(command.output().unwrap())
}

fn files(place: &Place) -> HashSet<String> {
    let entries = std::fs::read_dir(place.folder.path()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn every_command_uses_the_store_of_the_configuration(place: Place) {
    place.write(
        "milepost.toml",
        format!("store = \"{}\"\n[kinds.mail]\nexec = {{ program = \"cat\" }}\n", place.store),
    );
    let made = unnamed(&place, &["migrate"], &[]).ok();
    assert!(made.err.contains(", from milepost.toml"), "{}", made.err);
    unnamed(&place, &["enqueue", "mail"], &[]).ok();
    assert_eq!(place.ids().len(), 1, "the job is in the store of the configuration");
    unnamed(&place, &["events", "emit", "order", "17", "order.paid"], &[]).ok();
    let commands: [&[&str]; 14] = [
        &["jobs", "list"],
        &["batch", "list"],
        &["bulk", "list"],
        &["events", "tail"],
        &["inbox", "list"],
        &["queues", "list"],
        &["schedules", "list"],
        &["limits", "list"],
        &["workers", "list"],
        &["tokens", "list"],
        &["audit"],
        &["doctor"],
        &["prune"],
        &["events", "prune"],
    ];
    for command in commands {
        let ran = unnamed(&place, command, &[]);
        assert!(ran.err.contains(", from milepost.toml"), "{command:?}: {}", ran.err);
        assert_eq!(ran.status, 0, "{command:?}: {}", ran.err);
    }
    assert!(!files(&place).contains("milepost.db"), "{:?}", files(&place));
}

#[test]
fn a_file_whose_store_is_misspelt_or_named_twice_is_refused() {
    for (text, fault) in [
        ("stor = \"x.db\"\n", "1:1: unknown key stor"),
        ("Store = \"x.db\"\n", "1:1: unknown key Store"),
        ("[worker]\nstore = \"x.db\"\n", "2:1: unknown key store in worker"),
        ("[kinds.a]\nexec = { program = \"cat\" }\nstore = \"x.db\"\n", "3:1: unknown key store in kinds.a"),
        ("store = \"x.db\"\nstore = \"y.db\"\n", "2:1: store is defined twice"),
        ("store = \"x.db\"\n\"store\" = \"y.db\"\n", "2:1: \"store\" is defined twice"),
    ] {
        let place = Place::sqlite();
        place.write("milepost.toml", text);
        for command in [&["enqueue", "mail"][..], &["migrate"], &["jobs", "list"]] {
            let ran = unnamed(&place, command, &[]);
            assert!(ran.status != 0 && ran.err.contains(fault), "{command:?}: {}", ran.err);
        }
        assert!(!files(&place).iter().any(|file| file.ends_with(".db")), "{text}: {:?}", files(&place));
    }
    // Faults that do not concern the store do not keep a command from using it.
    let place = Place::sqlite();
    place.write(
        "milepost.toml",
        "store = \"own.db\"\n[kinds.storefront]\nexec = { program = \"cat\" }\n[kinds.storefront]\nexec = { program = 5 }\n",
    );
    unnamed(&place, &["enqueue", "mail"], &[]).ok();
}

#[test]
fn a_link_to_a_missing_configuration_is_a_fault() {
    let place = Place::sqlite();
    std::os::unix::fs::symlink("gone.toml", place.path("milepost.toml")).unwrap();
    for command in
        [&["enqueue", "mail"][..], &["migrate"], &["doctor"], &["serve", "--listen", "127.0.0.1:0"]]
    {
        let ran = unnamed(&place, command, &[]);
        assert!(ran.status != 0 && ran.err.contains("milepost.toml"), "{command:?}: {}", ran.err);
    }
    assert!(!files(&place).iter().any(|file| file.ends_with(".db")), "{:?}", files(&place));
}

#[test]
fn a_named_store_comes_first_and_is_not_printed() {
    let place = Place::sqlite();
    place.write("milepost.toml", "store = \"other.db\"\n");
    let made = place.run(&["enqueue", "mail", "--json"]).ok();
    assert!(!made.err.contains("store:"), "{}", made.err);
    place.run(&["--store", "sqlite:named.db", "enqueue", "mail"]).ok();
    let files = files(&place);
    assert!(
        files.contains("jobs.db") && files.contains("named.db") && !files.contains("other.db"),
        "{files:?}"
    );
}

#[test]
fn a_configuration_elsewhere_is_named_by_option_or_environment() {
    let place = Place::sqlite();
    std::fs::create_dir(place.path("etc")).unwrap();
    place.write("etc/jobs.toml", "store = \"${NAME}.db\"\n");
    let by_option = unnamed(&place, &["--config", "etc/jobs.toml", "enqueue", "mail"], &[("NAME", "a")]).ok();
    assert!(by_option.err.contains("store: sqlite:etc/a.db, from etc/jobs.toml"), "{}", by_option.err);
    unnamed(&place, &["enqueue", "mail"], &[("NAME", "b"), ("MILEPOST_CONFIG", "etc/jobs.toml")]).ok();
    let etc = std::fs::read_dir(place.path("etc")).unwrap();
    let etc: HashSet<_> = etc.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(etc.contains("a.db") && etc.contains("b.db"), "{etc:?}");
    assert!(!files(&place).contains("milepost.db"));
}

#[test]
fn no_store_is_created_beside_a_configuration_whose_store_cannot_be_read() {
    let place = Place::sqlite();
    for (text, fault) in [
        ("store = \n", "milepost.toml:1:"),
        ("store = \"${NOT_SET}.db\"\n", "NOT_SET is not set"),
        ("store = \"mysql://host/db\"\n", "milepost.toml:1:9"),
        ("store = 7\n", "milepost.toml:1:9"),
        ("store = \"sqlite:file:x.db?mode=memory\"\n", "a URI of SQLite"),
    ] {
        place.write("milepost.toml", text);
        let refused = unnamed(&place, &["enqueue", "mail"], &[]);
        assert!(
            refused.status == 2 && refused.err.contains(fault),
            "{text}: {} {}",
            refused.status,
            refused.err
        );
    }
    let missing = unnamed(&place, &["--config", "none.toml", "enqueue", "mail"], &[]);
    assert!(
        missing.status == 1 && missing.err.contains("cannot read the configuration none.toml"),
        "{}",
        missing.err
    );
    place.write("milepost.toml", "store = \"jobs.db\"\nkinds = 7\n");
    unnamed(&place, &["enqueue", "mail"], &[]).ok();
    assert_eq!(
        files(&place).iter().filter(|name| name.ends_with(".db")).count(),
        1,
        "faults elsewhere do not matter"
    );
}

#[test]
fn without_a_configuration_the_default_store_is_printed() {
    let place = Place::sqlite();
    let made = unnamed(&place, &["enqueue", "mail"], &[]).ok();
    assert!(made.err.contains("store: sqlite:milepost.db\n"), "{}", made.err);
}
