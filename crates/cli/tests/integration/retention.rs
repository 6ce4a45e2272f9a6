//! Tests of `milepost retention`.

use std::panic::AssertUnwindSafe;

use serde_json::{Value, json};

use crate::support::{Place, on_each_store};

on_each_store! {
    a_retention_period_applies_until_it_is_removed,
}

fn a_retention_period_applies_until_it_is_removed(place: Place) {
    place.write("milepost.toml", "[retention]\nsucceeded = \"1d\"\n");
    place.run(&["migrate"]).ok();
    let listed = |name: &str| -> Value {
        let all = place.run(&["retention", "list", "--json"]).json();
        all.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(listed("succeeded"), json!({"name": "succeeded", "period": "1d", "set_by": "configuration"}));
    let said =
        place.run(&["retention", "set", "succeeded", "forever", "--reason", "they are examined"]).ok().out;
    assert_eq!(said, "succeeded jobs are kept: forever\n");
    assert_eq!(listed("succeeded"), json!({"name": "succeeded", "period": "forever", "set_by": "operator"}));
    let table = place.run(&["retention", "list"]).ok().out;
    assert!(table.contains("400d") && table.contains("default"), "{table}");
    let pruned = place.run(&["prune", "--dry-run"]).ok().out;
    let row = pruned.lines().find(|line| line.starts_with("succeeded jobs")).unwrap();
    assert!(row.contains("forever"), "{pruned}");
    for (noun, age) in [("events", "events are kept"), ("inbox", "ids are kept")] {
        place.run(&["retention", "set", noun, "forever"]).ok();
        let pruned = place.run(&[noun, "prune"]).ok().out;
        assert!(pruned.contains(age) && pruned.contains("forever"), "{pruned}");
    }
    for row in ["'audit', 1", "'workers', 1", "'keys', 9223372036854775807", "'keys', -1"] {
        let insert = format!("insert into milepost.retention_setting values ({row})");
        let inserted = std::panic::catch_unwind(AssertUnwindSafe(|| place.tamper(&insert)));
        assert!(inserted.is_err(), "the table accepts {row}");
    }
    for args in [["audit", "1d"], ["succeeded", "soon"], ["jobs", "1d"]] {
        let refused = place.run(&["retention", "set", args[0], args[1]]);
        assert!(refused.status != 0 && !refused.err.is_empty(), "{args:?}");
    }
    let said = place.run(&["retention", "remove", "succeeded"]).ok().out;
    assert_eq!(said, "succeeded jobs are kept as the configuration says, again\n");
    assert_eq!(listed("succeeded")["period"], "1d");
}
