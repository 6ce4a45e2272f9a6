//! Tests of generated files: projects, completion scripts and manual pages.

use std::os::unix::fs::PermissionsExt;

use crate::support::Place;

#[test]
fn a_project_is_created_once_and_is_ready_to_run() {
    let place = Place::without_store();
    let created = place.run(&["init", "shop"]).ok();
    assert!(created.err.contains("cd shop") && created.err.contains("milepost work"), "{}", created.err);
    let mode = |name: &str| {
        std::fs::metadata(place.folder.path().join("shop").join(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("milepost.toml"), mode("hello.sh")), (0o600, 0o755));
    let checked = place.run(&["--config", "shop/milepost.toml", "config", "check"]).ok();
    assert!(checked.out.contains("it runs hello"), "{}", checked.out);
    let payload = r#"{"name": "Ada"}"#;
    place.run(&["--config", "shop/milepost.toml", "enqueue", "hello", "--payload", payload]).ok();
    let again = place.run(&["init", "shop"]);
    assert_eq!(again.status, 1);
    assert!(again.err.contains("shop/milepost.toml exists already"), "{}", again.err);
}

#[test]
fn a_project_in_the_current_folder_needs_no_change_of_folder() {
    let place = Place::without_store();
    let created = place.run(&["init"]).ok();
    assert!(!created.err.contains("cd ") && place.folder.path().join("hello.sh").exists(), "{}", created.err);
}

#[test]
fn every_shell_has_a_completion_script() {
    let place = Place::without_store();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.run(&["completions", shell]).ok().out;
        assert!(script.contains("milepost") && script.contains("schedules"), "{shell}: {script}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::without_store();
    let page = place.run(&["man"]).ok().out;
    assert!(page.contains(".TH") && page.contains("milepost"), "{page}");
    place.run(&["man", "--folder", "pages"]).ok();
    for name in ["milepost.1", "milepost-jobs.1", "milepost-jobs-retry.1", "milepost-bench-jobs.1"] {
        let page = place.read(&format!("pages/{name}"));
        assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    for hidden in ["milepost-demo-worker.1", "milepost-jobs-help.1"] {
        assert!(!place.folder.path().join("pages").join(hidden).exists(), "{hidden}");
    }
}
