//! Tests of `[batch.NAME]`.

use super::*;

#[test]
fn a_dag_stands_in_a_file_of_its_own_that_is_checked_too() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| parse(text, folder.path(), |_| None);
    let section = "[batch.orders]\nfile = \"orders.toml\"\n";
    let fault = |text: &str| {
        let faults = read(text).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        (faults[0].line, faults[0].column, faults[0].what.clone())
    };
    let (line, column, missing) = fault(section);
    assert!((line, column) == (2, 8) && missing.contains("cannot read the definition"), "{missing}");

    std::fs::write(folder.path().join("orders.toml"), "name = \"orders\"\n[tasks.a]\nkind = \"k\"\n")
        .unwrap();
    let config = read(section).unwrap();
    assert_eq!(config.batch["orders"].dag("orders", folder.path()).unwrap().graph().len(), 1);
    let (.., other) = fault("[batch.order]\nfile = \"orders.toml\"\n");
    assert!(other.contains("has the name \"orders\", but this section has the name \"order\""), "{other}");

    std::fs::write(folder.path().join("orders.toml"), "name = \"orders\"\n[tasks.a]\nkindd = \"k\"\n")
        .unwrap();
    let (.., wrong) = fault(section);
    assert!(wrong.contains("orders.toml:3:1: task \"a\", kindd: unknown field"), "{wrong}");
}
