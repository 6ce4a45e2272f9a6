//! A program that writes a hundred megabytes without a line feed uses almost no memory of the worker.

#![cfg(target_os = "linux")]

use crate::support::Stage;
use milepost_executors::exec::ExecConfig;
use milepost_testkit::alone;
use serde_json::json;

/// Returns the peak memory of this process, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_on_both_outputs_is_read_and_not_kept() {
    // The test measures the memory of the whole process, so no other test may run in it.
    if !alone::is_alone() {
        let test = "a_flood_on_both_outputs_is_read_and_not_kept";
        return tokio::task::block_in_place(|| {
            alone::assert_passes(&mut alone::command(module_path!(), test));
        });
    }
    // The same amount is written to standard error and to standard output.
    let saying = |bytes: u64| {
        let flood = format!("head -c {bytes} /dev/zero | tr '\\0' x");
        let mut config = ExecConfig::of("/bin/sh");
        config.args = vec!["-c".to_owned(), format!("{flood} >&2 & {flood}; wait; echo; echo done")];
        Stage::exec(config)
    };
    assert_eq!(saying(100_000).await.result(&json!({})).await, Some("done".into()));
    let before = peak_kib();
    assert_eq!(saying(100_000_000).await.result(&json!({})).await, Some("done".into()));
    let more = peak_kib() - before;
    assert!(more < 4 * 1024, "{more} KiB for 200 MB of output");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_line_is_cut() {
    let mut config = ExecConfig::of("/bin/sh");
    config.args = vec!["-c".to_owned(), "head -c 1000000 /dev/zero | tr '\\0' 7".to_owned()];
    let result = Stage::exec(config).await.result(&json!({})).await.unwrap();
    let result = result.as_str().unwrap();
    assert!(result.len() < 65 * 1024 && result.ends_with("7…"), "{} bytes", result.len());
}
