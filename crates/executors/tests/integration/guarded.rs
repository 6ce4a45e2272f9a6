//! Targets that calls can reach only if they are allowed by name: the machine itself, its networks, the metadata services of clouds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::Stage;
use crate::support::server::Server;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_executors::http::{Http, HttpConfig};
use milepost_testkit::alone;
use milepost_testkit::hosts::NOT_PUBLIC;
use serde_json::json;
use tokio::net::TcpListener;

/// Starts a server on all addresses of this machine that closes every connection; returns its port and the number of connections.
async fn everywhere() -> (u16, Arc<AtomicUsize>) {
    let listener = match TcpListener::bind("[::]:0").await {
        Ok(listener) => listener,
        // A machine without IPv6.
        Err(_) => TcpListener::bind("0.0.0.0:0").await.unwrap(),
    };
    let (port, connections) = (listener.local_addr().unwrap().port(), Arc::<AtomicUsize>::default());
    let count = connections.clone();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, connections)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_way_to_write_an_address_that_is_not_public_leads_to_a_connection() {
    let (port, connections) = everywhere().await;
    for host in NOT_PUBLIC.split_whitespace() {
        for url in [
            format!("http://{host}:{port}/"),
            format!("https://{host}:{port}/"),
            format!("http://shop.example@{host}:{port}/"),
        ] {
            let config = HttpConfig::to(&url);
            let why = match Http::new(&config) {
                Err(invalid) => invalid.to_string(),
                Ok(_) => {
                    let end = Stage::http(config).await.first_end().await;
                    assert_eq!((end.verb, end.error_code.as_deref()), (Verb::Retry, Some("http_forbidden")));
                    end.error_message.unwrap()
                }
            };
            assert!(why.contains("not a public address") && why.contains("`allow_networks`"), "{url}: {why}");
        }
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_whose_networks_are_allowed_is_called() {
    let server = Server::start().await;
    let url = server.url.replace("127.0.0.1", "localhost");
    let config = HttpConfig::to(format!("{url}/empty")).allow(&["127.0.0.0/8", "::1/128"]);
    let stage = Stage::http(config).await;
    let job = stage.enqueue(&json!({})).await;
    stage.scene.until(job, JobState::Succeeded).await;
    let one = HttpConfig::to("http://10.0.0.1/").allow(&["10.0.0.1/8"]);
    let why = Http::new(&one).err().unwrap().to_string();
    assert_eq!(why, "10.0.0.1/8 is not a network; the network is 10.0.0.0/8");
}

/// The targets of a proxy could not be checked.
#[tokio::test(flavor = "multi_thread")]
async fn no_proxy_of_the_environment_is_used() {
    let (port, connections) = everywhere().await;
    let mut again = alone::command(module_path!(), "a_name_whose_networks_are_allowed_is_called");
    again.env_remove("no_proxy").env_remove("NO_PROXY");
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        again.env(name, format!("http://127.0.0.1:{port}"));
    }
    tokio::task::block_in_place(|| alone::assert_passes(&mut again));
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}
