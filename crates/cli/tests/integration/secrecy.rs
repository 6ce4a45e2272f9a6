//! Tests of what others on the machine can read: programs of jobs, and files.

#![cfg(target_os = "linux")]

use crate::support::Place;
use crate::support::process::Process;
use crate::work::{enqueue, start, until_in};
use serde_json::json;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

/// A program that prints what a job's program can read about its worker.
const LOOK_AROUND: &str = r#"
{ env; tr '\0' ' ' <"/proc/$PPID/cmdline"; cat "/proc/$PPID/environ"; } >seen 2>&1
echo "it was $1" >&2
exit 65
"#;

/// Returns the same command without privileges: root drops all capabilities, with which it could read everything.
fn without_capabilities(command: &Command) -> Command {
    let mut plain = Command::new("setpriv");
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        plain.args(["--bounding-set=-all", "--inh-caps=-all"]);
    }
    plain.arg(command.get_program()).args(command.get_args());
    plain.current_dir(command.get_current_dir().unwrap());
    plain.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    plain.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    plain
}

#[test]
fn a_program_learns_no_password_of_the_store() {
    const PASSWORD: &str = "s3cret-of-the-store";
    let mut place = Place::postgres();
    place.run(&["migrate"]).ok();
    place.store =
        place.store.replacen("postgres://postgres@", &format!("postgres://postgres:{PASSWORD}@"), 1);
    assert!(place.store.contains(PASSWORD), "{}", place.store);
    place.write("look.sh", LOOK_AROUND);
    let exec = format!("program = \"sh\", args = [\"look.sh\", \"{PASSWORD}\"], inherit_env = true");
    place.write("milepost.toml", format!("[kinds.look]\nexec = {{ {exec} }}\n"));
    let job = enqueue(&place, "look", &json!(null));
    let mut command = without_capabilities(&place.command(&["work", "--store", &place.store]));
    let mut work = Process::spawn(&mut command);
    work.hear(" runs ");
    let view = until_in(&place, &job, "failed");
    assert!(view["last_failure"]["message"].as_str().unwrap().contains("it was [secret]"), "{view}");
    work.leave();
    let seen = place.read("seen");
    assert!(seen.contains("/environ: Permission denied"), "{seen}");
    assert!(seen.contains(" work") && !seen.contains(PASSWORD), "{seen}");
}

#[test]
fn files_with_payloads_and_secrets_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::sqlite();
    place.run(&["config", "init"]).ok();
    let work = start(&place, &[]);
    let store = place.store.strip_prefix("sqlite:").unwrap().to_owned();
    let config = place.path("milepost.toml").display().to_string();
    for file in [store.clone(), format!("{store}-wal"), config] {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file}: {mode:o}");
    }
    work.leave();
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut work = Process::spawn(&mut place.command(&["work"]));
    work.hear("other users of this machine can use the file");
    work.leave();
}
