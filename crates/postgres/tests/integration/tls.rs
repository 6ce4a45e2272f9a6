//! Tests of encrypted connections: certificates of servers are verified, and servers with wrong ones are refused.

use std::sync::Arc;

use milepost_core::finish::End;
use milepost_core::port::StoreResult;
use milepost_core::state::JobState;
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_testkit::Scene;
use milepost_testkit::server::Server;
use milepost_testkit::tls::Tls;

const PASSWORD: &str = "s3cret";

async fn connect(user: &str, address: &str, parameters: &str) -> StoreResult<PostgresStore> {
    let url = format!("postgres://{user}@{address}?{parameters}");
    PostgresStore::connect(&url, PostgresOptions::default()).await
}

/// Returns the message of a refused connection, with its causes.
async fn refusal(user: &str, address: &str, parameters: &str) -> String {
    let Err(error) = connect(user, address, parameters).await else { panic!("{parameters} was accepted") };
    let said = error.chain();
    assert!(!said.contains(PASSWORD), "{said}");
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_run_over_encrypted_connections_to_servers_that_are_checked() {
    let tls = Tls::create("postgres");
    let (_server, address) = Server::with_tls(&tls, PASSWORD).await;
    let owner = format!("postgres:{PASSWORD}");
    let authority = format!("sslrootcert={}", tls.authority().display());
    let ways = ["sslmode=prefer", "sslmode=require", "sslmode=verify-ca", "sslmode=verify-full"];
    for way in ways {
        let store = connect(&owner, &address, &format!("{way}&{authority}")).await.unwrap();
        store.migrate().await.unwrap();
        let scene = Scene::on(Arc::new(store)).await;
        let job = scene.running(Scene::job()).await;
        scene.finish(&job, End::Succeed { result: None }).await;
        assert_eq!(scene.state(job.run.job).await, JobState::Succeeded, "{way}");
    }
    let by_address = address.replace("localhost", "127.0.0.1");
    connect(&owner, &by_address, &format!("sslmode=verify-ca&{authority}")).await.unwrap();
    for (user, address, parameters, words) in [
        (&owner, &address, "sslmode=disable".to_owned(), "no encryption"),
        (&owner, &address, "sslmode=verify-full".to_owned(), "UnknownIssuer"),
        (&owner, &by_address, format!("sslmode=verify-full&{authority}"), "not valid for name"),
        (&owner, &address, "sslmode=verify-full&sslrootcert=/nowhere.pem".to_owned(), "No such file"),
        (&format!("postgres:{PASSWORD}2"), &address, "sslmode=require".to_owned(), "password"),
    ] {
        let said = refusal(user, address, &parameters).await;
        assert!(said.contains(words), "{parameters}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_encryption_is_refused_where_it_is_required() {
    let server = Server::create().await;
    let address = server.url().replace("postgres://postgres@", "");
    let said = refusal("postgres", &address, "sslmode=require").await;
    assert!(said.contains("does not support TLS"), "{said}");
}
