//! The scripts of `ops/k6`, run in Node.js against a real server, with replacements for the modules of k6 (`tests/k6`). They find wrong paths, bodies and
//! fields; k6 itself does not run.

use std::path::Path;
use std::process::Command;

use milepost_load::process::{Process, Program, program_beside};
use serde_json::Value;
use tempfile::TempDir;

/// A folder with the scripts, the replacements, and a server.
struct Scene {
    folder: TempDir,
    url: String,
    _server: Process,
}

impl Scene {
    async fn set_up() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let modules = folder.path().join("node_modules");
        std::fs::create_dir(&modules).unwrap();
        copy(&package.join("tests/k6"), &modules.join("k6"));
        copy(&package.join("../../ops/k6"), &folder.path().join("scripts"));
        std::fs::copy(package.join("tests/k6/run.js"), folder.path().join("run.js")).unwrap();
        std::fs::write(folder.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
        let store = format!("sqlite:{}", folder.path().join("jobs.db").display());
        let path = program_beside(Path::new(env!("CARGO_BIN_EXE_milepost-load"))).unwrap();
        let program = Program { path, folder: folder.path().to_owned(), store };
        program.migrate(&program.store).await.unwrap();
        let (server, address) = program.serve().await.unwrap();
        Self { folder, url: format!("http://{address}"), _server: server }
    }

    /// Runs a script for nine seconds. Returns its last line.
    fn run(&self, script: &str) -> (bool, Value) {
        let ran = Command::new("node")
            .args(["run.js", &format!("scripts/{script}")])
            .current_dir(self.folder.path())
            .envs([("MILEPOST_URL", self.url.as_str()), ("SECONDS", "9"), ("RATE", "10")])
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&ran.stdout);
        let last = printed.lines().last().and_then(|line| serde_json::from_str(line).ok());
        let last =
            last.unwrap_or_else(|| panic!("{script}: {printed}{}", String::from_utf8_lossy(&ran.stderr)));
        (ran.status.success(), last)
    }
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
}

/// Runs a script, all of whose checks must pass.
async fn passes(script: &str) {
    let scene = Scene::set_up().await;
    let (has_passed, result) = scene.run(script);
    assert!(
        has_passed && result["passed"].as_u64().unwrap() > result["creates"].as_u64().unwrap(),
        "{result}"
    );
}

#[tokio::test]
async fn the_script_same_key_passes() {
    passes("same-key.js").await;
}

#[tokio::test]
async fn the_script_mixed_passes() {
    passes("mixed.js").await;
}

#[tokio::test]
async fn the_script_worker_killed_passes() {
    passes("worker-killed.js").await;
}

#[tokio::test]
async fn the_script_redis_down_passes() {
    passes("redis-down.js").await;
}

#[tokio::test]
async fn the_script_slow_database_passes() {
    passes("slow-database.js").await;
}

#[tokio::test]
async fn a_script_fails_if_a_job_ends_otherwise_than_requested() {
    let scene = Scene::set_up().await;
    let script = scene.folder.path().join("scripts/mixed.js");
    let text = std::fs::read_to_string(&script).unwrap();
    let changed = text
        .replace("case 4: return { payload: { failures: 2 }", "case 4: return { payload: { refused: true }");
    assert_ne!(changed, text);
    std::fs::write(script, changed).unwrap();
    let (has_passed, result) = scene.run("mixed.js");
    assert!(!has_passed && result["failed"].to_string().contains("every job ends as requested"), "{result}");
}
