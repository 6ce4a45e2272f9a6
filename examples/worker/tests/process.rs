//! Tests of the program as a process.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::process::{Child, Command};

use example_worker::{ConfirmOrder, Newsletter, Shop};
use milepost::{Job, JobState};
use milepost_testkit::wait;

/// The worker process, which is killed when this value is dropped.
struct Program(Child);

impl Program {
    fn start(address: &str) -> Self {
        let program =
            Command::new(env!("CARGO_BIN_EXE_example-worker")).env("MILEPOST_STORE", address).spawn();
        Self(program.expect("the worker starts"))
    }

    fn terminate(&self) {
        let killed = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        assert!(killed.expect("kill exists").success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_worker_that_is_asked_to_leave_hands_a_long_job_back_with_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("shop.db").display());
    let shop = Shop::open(&address).await.unwrap();
    let store = shop.store();
    let subscribers = (0..10_000).map(|number| format!("{number}@example.org")).collect();
    let long = Newsletter { subject: "Milestones".to_owned(), subscribers }.to_job().unwrap();
    let short = ConfirmOrder { order: 7 }.to_job().unwrap();
    store.enqueue_many(&[long.clone(), short.clone()]).await.unwrap();

    let mut worker = Program::start(&address);
    let view = async |job: &milepost::NewJob| store.job(job.id).await.unwrap().unwrap();
    wait::until("the order is confirmed", async || view(&short).await.row.state == JobState::Succeeded).await;
    wait::until("the newsletter is running", async || view(&long).await.progress.is_some()).await;
    worker.terminate();
    let status = tokio::task::spawn_blocking(move || worker.0.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");

    let left = view(&long).await;
    assert_eq!((left.row.state, left.row.attempt), (JobState::Pending, 0), "no attempt is used");
    let sent: usize = serde_json::from_str(left.checkpoint.expect("kept").get()).unwrap();
    assert!((1..10_000).contains(&sent), "{sent}");
    assert_eq!(shop.confirmed().await.unwrap(), 1);
}
