//! Tests of `team`.

use milepost_core::precedence::Scope;

use super::*;

const FILE: &str = r#"
    team = "billing"
    [[schedules]]
    name = "NAME"
    every = "1h"
    kind = "mail"
    [[limits]]
    kind = "NAME"
    rate = "1/s"
    [[limits]]
    group = "NAME"
    concurrency = 2
    [bulk."NAME"]
    source = "select id from t where id > :cursor order by id limit :limit"
    effect = "update t set x = 1 where id = any(:ids)"
"#;

#[test]
fn a_file_of_a_team_keeps_what_belongs_to_the_team() {
    let config = parse("team = \"billing\"", Path::new(""), |_| None).unwrap();
    assert_eq!(config.scope, Scope::Team("billing".to_owned()));
    assert_eq!(parse("", Path::new(""), |_| None).unwrap().scope, Scope::All);
}

#[test]
fn names_that_do_not_belong_to_the_team_are_refused() {
    let about_team = |name: &str| {
        let faults = faults(&FILE.replace("NAME", name));
        faults.into_iter().filter(|fault| fault.contains("does not belong")).collect::<Vec<_>>()
    };
    assert_eq!(about_team("billing.x"), Vec::<String>::new());
    let found = about_team("billings");
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[0].contains("the schedule \"billings\" does not belong to team \"billing\""), "{found:?}");
}

#[test]
fn a_team_whose_names_could_belong_to_another_team_is_refused() {
    for name in ["", "billing.eu", "billing-eu", "billing:", "b b"] {
        let faults = faults(&format!("team = \"{name}\""));
        assert!(faults.len() == 1 && faults[0].contains("letters and digits"), "{name}: {faults:?}");
    }
    assert!(faults("team = \"billing2\"").is_empty());
}
