//! Jobs that run as real programs, including misbehaving ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::{Stage, soon};
use milepost::{KindOptions, NewJob};
use milepost_conformance::runtime::KIND;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_executors::exec::ExecConfig;
use milepost_testkit::wait;
use serde_json::{Value, json};

/// Returns a shell script as the program; `$1` is the first of the arguments.
fn script(text: &str, args: &[&str]) -> ExecConfig {
    let mut config = ExecConfig::of("/bin/sh");
    config.args = ["-c", text, "sh"].iter().chain(args).map(|&arg| arg.to_owned()).collect();
    config.kill_grace = Duration::from_millis(300);
    config
}

async fn result(text: &str) -> Option<Value> {
    Stage::exec(script(text, &[])).await.result(&json!({ "to": "ada" })).await
}

/// Waits until a script has written a process id into the file, and returns it.
async fn pid_in(file: &Path) -> u32 {
    let read = || std::fs::read_to_string(file).ok()?.trim().parse().ok();
    wait::until("the process writes its process id", || async { read().is_some() }).await;
    read().unwrap()
}

/// Waits until the process does not exist or is a zombie.
async fn until_gone(pid: u32) {
    wait::until(&format!("process {pid} has ended"), || async {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .map_or(true, |stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
    })
    .await;
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    (folder, file)
}

/// A script that ignores SIGTERM, like its children, and writes its process id and that of a child.
const DEAF: &str =
    "trap '' TERM; sleep 1000 & echo $! > \"$1.child\"; echo $$ > \"$1\"; while :; do sleep 1000; done";

/// Enough time for a script to reach its expected point before the time limit.
const TIME_ENOUGH: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn the_last_line_is_the_result() {
    assert_eq!(result("cat").await, Some(json!({ "to": "ada" })));
    assert_eq!(result("echo one; echo; echo ' two '; echo '  '").await, Some("two".into()));
    assert_eq!(
        result("echo one; printf '[1,\\n2]'").await,
        Some("2]".into()),
        "the result is the last line only"
    );
    assert_eq!(result("printf 7").await, Some(7.into()), "without a line feed");
    assert_eq!(result("true").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_reach_the_program_as_they_are() {
    let mut config = ExecConfig::of("printf");
    config.args = ["%s|%s|%s", "$HOME; rm -rf *", "`id`", "a b"].map(str::to_owned).to_vec();
    let result = Stage::exec(config).await.result(&json!({})).await;
    assert_eq!(result, Some("$HOME; rm -rf *|`id`|a b".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_clean_unless_it_is_inherited() {
    let names = |result: Option<Value>| {
        let text = result.unwrap();
        let mut names: Vec<String> = text.as_str().unwrap().split(' ').map(str::to_owned).collect();
        names.retain(|name| !matches!(name.as_str(), "PWD" | "SHLVL" | "_" | "OLDPWD" | "LANG"));
        names
    };
    let told = [
        "MILEPOST_ATTEMPT",
        "MILEPOST_IDEMPOTENCY_KEY",
        "MILEPOST_JOB_ID",
        "MILEPOST_KIND",
        "MILEPOST_RUN_TOKEN",
    ];
    let mut config = script("env | sed 's/=.*//' | sort | tr '\\n' ' '", &[]);
    config.env = BTreeMap::from([("COLOUR".to_owned(), "blue".to_owned())]);
    let clean = names(Stage::exec(config.clone()).await.result(&json!({})).await);
    let mut expected = vec!["COLOUR", "HOME"];
    expected.extend(told);
    expected.push("PATH");
    assert_eq!(clean, expected);
    config.inherit_env = true;
    let inherited = names(Stage::exec(config).await.result(&json!({})).await);
    assert!(inherited.contains(&"CARGO_PKG_NAME".to_owned()) && inherited.contains(&"COLOUR".to_owned()));
    assert!(told.iter().all(|&name| inherited.contains(&name.to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_a_schedule_tells_its_tick() {
    let stage = Stage::exec(script("printf \"$MILEPOST_NOMINAL_AT\"", &[])).await;
    let (job, tick) = stage.scheduled().await;
    let result = stage.scene.view(job).await.result.unwrap();
    assert_eq!(result.get(), format!("{tick:?}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_status_says_whether_another_attempt_makes_sense() {
    for (text, verb, code) in [
        ("exit 1", Verb::Retry, "exec_1"),
        ("exit 64", Verb::Fail, "exec_64"),
        ("exit 65", Verb::Fail, "exec_65"),
        ("exit 75", Verb::Retry, "exec_75"),
        ("exit 255", Verb::Retry, "exec_255"),
        ("kill -9 $$", Verb::Retry, "exec_signal_9"),
        ("kill -SEGV $$", Verb::Retry, "exec_signal_11"),
    ] {
        let text = format!("head -c 100000 /dev/zero | tr '\\0' x >&2; echo 'no such mailbox' >&2; {text}");
        let end = Stage::exec(script(&text, &[])).await.first_end().await;
        assert_eq!((end.verb, end.error_code.as_deref()), (verb, Some(code)), "{text}: {end:?}");
        let message = end.error_message.unwrap();
        assert!(message.ends_with("no such mailbox") && message.len() < 5000, "{message}");
    }
    let end = Stage::exec(ExecConfig::of("/no/such/program")).await.first_end().await;
    assert_eq!((end.verb, end.error_code.as_deref()), (Verb::Retry, Some("exec_spawn")));
    assert!(end.error_message.unwrap().contains("/no/such/program"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_statuses_that_are_retried_can_be_chosen() {
    for (status, verb) in [(1, Verb::Fail), (65, Verb::Retry), (75, Verb::Retry)] {
        let mut config = script(&format!("exit {status}"), &[]);
        config.retry_exit_codes = Some(vec![65, 75]);
        let end = Stage::exec(config).await.first_end().await;
        assert_eq!((end.verb, end.error_code), (verb, Some(format!("exec_{status}"))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_told_while_the_program_runs() {
    let (_folder, pid) = file();
    let text = "echo 'MILEPOST_PROGRESS 3/10 three sent'; echo $$ > \"$1\"; sleep 1000";
    let stage = Stage::exec(script(text, &[pid.to_str().unwrap()])).await;
    let job = stage.enqueue(&json!({})).await;
    wait::until("progress was stored", || async { stage.scene.view(job).await.progress.is_some() }).await;
    let progress = stage.scene.view(job).await.progress.unwrap();
    assert_eq!(
        (progress.done, progress.total, progress.message.as_deref()),
        (3, Some(10), Some("three sent"))
    );
    stage.cancel(job).await;
    let said = result("echo done; echo MILEPOST_PROGRESS 10/10").await;
    assert_eq!(said, Some("done".into()), "progress is not a result");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_never_reads_its_input_does_not_hang() {
    let megabyte = Value::String("x".repeat(1024 * 1024 - 10));
    assert_eq!(Stage::exec(script("echo done", &[])).await.result(&megabyte).await, Some("done".into()));
    let stage = Stage::exec(script("sleep 0.3; echo done", &[])).await;
    assert_eq!(stage.result(&megabyte).await, Some("done".into()));
    // A program that reads its input gets all of it.
    let length = Stage::exec(script("wc -c", &[])).await.result(&megabyte).await;
    assert_eq!(length, Some((1024 * 1024 - 8).into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_leaves_behind_does_not_hold_up_its_job_and_goes_with_it() {
    let (_folder, pid) = file();
    let began = Instant::now();
    for left in ["sleep 1000 &", "sleep 1000 </dev/null >/dev/null 2>&1 &"] {
        let text = format!("{left} echo $! > \"$1\"; echo done");
        let stage = Stage::exec(script(&text, &[pid.to_str().unwrap()])).await;
        assert_eq!(stage.result(&json!({})).await, Some("done".into()));
        until_gone(pid_in(&pid).await).await;
        std::fs::remove_file(&pid).unwrap();
    }
    assert!(
        began.elapsed() < Duration::from_secs(1000),
        "the executor waited for the background process: {:?}",
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_ends_a_whole_group_that_ignores_sigterm() {
    let (_folder, pid) = file();
    let stage = Stage::exec(script(DEAF, &[pid.to_str().unwrap()])).await;
    let job = stage.enqueue(&json!({})).await;
    let (leader, child) = (pid_in(&pid).await, pid_in(&pid.with_extension("child")).await);
    stage.cancel(job).await;
    until_gone(leader).await;
    until_gone(child).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_heeds_sigterm_gets_its_grace() {
    let (_folder, pid) = file();
    let text = "trap 'echo cleaned > \"$1.note\"; exit 0' TERM; echo $$ > \"$1\"; sleep 1000 & wait";
    let mut config = script(text, &[pid.to_str().unwrap()]);
    config.kill_grace = Duration::from_secs(60);
    let stage = Stage::exec(config).await;
    let job = stage.enqueue(&json!({})).await;
    let leader = pid_in(&pid).await;
    stage.cancel(job).await;
    until_gone(leader).await;
    assert_eq!(std::fs::read_to_string(pid.with_extension("note")).unwrap(), "cleaned\n");
    assert_eq!(
        stage.scene.count(job, Verb::Succeed).await,
        0,
        "exit status 0 after a stop request is not a success"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_over_its_time_is_ended_before_the_next_begins() {
    let (_folder, pid) = file();
    let stop_grace = wait::LIMIT;
    let options = KindOptions { timeout: Some(TIME_ENOUGH), stop_grace, ..soon() };
    let stage = Stage::exec_with(options, script(DEAF, &[pid.to_str().unwrap()])).await;
    let job = stage.scene.enqueue(NewJob::new(KIND, &json!({})).unwrap().max_attempts(1)).await;
    let (leader, child) = (pid_in(&pid).await, pid_in(&pid.with_extension("child")).await);
    stage.scene.until(job, JobState::Failed).await;
    assert!(
        !Path::new(&format!("/proc/{leader}")).exists(),
        "the program must be reaped before its end is reported"
    );
    assert_eq!(stage.end_of(job).await.error_code.as_deref(), Some("timeout"));
    until_gone(child).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_dropped_ends_its_group() {
    let (_folder, pid) = file();
    let options = KindOptions { timeout: Some(TIME_ENOUGH), ..soon() };
    let stage = Stage::exec_with(options, script(DEAF, &[pid.to_str().unwrap()])).await;
    let job = stage.scene.enqueue(NewJob::new(KIND, &json!({})).unwrap().max_attempts(1)).await;
    let (leader, child) = (pid_in(&pid).await, pid_in(&pid.with_extension("child")).await);
    stage.scene.until(job, JobState::Failed).await;
    until_gone(leader).await;
    until_gone(child).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_leaves_ends_what_it_runs() {
    let (_folder, pid) = file();
    let stage = Stage::exec(script(DEAF, &[pid.to_str().unwrap()])).await;
    let job = stage.enqueue(&json!({})).await;
    let (leader, child) = (pid_in(&pid).await, pid_in(&pid.with_extension("child")).await);
    let Stage { worker, scene, .. } = stage;
    worker.shutdown().await;
    assert_eq!(scene.state(job).await, JobState::Pending, "the job is released");
    until_gone(leader).await;
    until_gone(child).await;
}

#[test]
fn a_runtime_that_goes_down_takes_its_programs_along() {
    let (_folder, pid) = file();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (leader, child, stage) = runtime.block_on(async {
        let stage = Stage::exec(script(DEAF, &[pid.to_str().unwrap()])).await;
        stage.enqueue(&json!({})).await;
        (pid_in(&pid).await, pid_in(&pid.with_extension("child")).await, stage)
    });
    drop(runtime);
    drop(stage);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        until_gone(leader).await;
        until_gone(child).await;
    });
}
