//! Addresses that webhooks must not reach: the local machine, its networks, cloud metadata services.

use milepost_relay::sink::{self, Delivery, SinkConfig};
use milepost_testkit::alone;
use milepost_testkit::hosts::NOT_PUBLIC;

use crate::common;
use crate::webhook::server::{Reply, Server};
use crate::webhook::settings;

/// Starts a receiver on all addresses of this machine.
async fn everywhere() -> Server {
    let taking_all = |_: &_, _| Reply::status("204 No Content");
    match std::net::TcpListener::bind("[::]:0") {
        Ok(_) => Server::at("[::]:0", taking_all).await,
        // For machines without IPv6.
        Err(_) => Server::at("0.0.0.0:0", taking_all).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_way_to_write_an_address_that_is_not_public_leads_to_a_connection() {
    let server = everywhere().await;
    for host in NOT_PUBLIC.split_whitespace() {
        for scheme in ["http", "https"] {
            for login in ["", "shop.example@"] {
                let url = format!("{scheme}://{login}{host}:{}/", server.port);
                let config =
                    settings(&url).replace("allow_networks = [\"127.0.0.0/8\"]\n", "timeout_ms = 60000\n");
                let config: SinkConfig = toml::from_str(&config).unwrap();
                let why = match sink::open(&config) {
                    Err(invalid) => invalid.to_string(),
                    Ok(sink) => sink.publish(&common::events("order", 1)).await.unwrap_err().to_string(),
                };
                assert!(why.contains("not a public address"), "{url}: {why}");
            }
        }
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_that_are_allowed_are_reached_and_no_others() {
    let server = everywhere().await;
    let local = settings(&format!("http://localhost:{}/", server.port))
        .replace("\"127.0.0.0/8\"", "\"127.0.0.0/8\", \"::1/128\"");
    common::publish_all(&*common::open(&local), &common::events("order", 1)).await;
    // All these names are the same address.
    for host in ["2130706433", "[::ffff:127.0.0.1]"] {
        let sink = common::open(&settings(&format!("http://{host}:{}/", server.port)));
        common::publish_all(&*sink, &common::events("order", 1)).await;
    }
    let connections = server.connections();
    let why = common::trouble(&settings(&format!("http://169.254.169.254:{}/", server.port))).await;
    assert!(why.contains("169.254.169.254 is not a public address"), "{why}");
    let why = common::trouble(&settings(&format!("http://[::1]:{}/", server.port))).await;
    assert!(why.contains("::1 is not a public address"), "{why}");
    assert_eq!(server.connections(), connections);
}

#[tokio::test(flavor = "multi_thread")]
async fn public_addresses_get_https_only() {
    let why = common::trouble(&settings("http://1.1.1.1/s3cret")).await;
    assert!(why.contains("use https") && !why.contains("s3cret"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_refused_and_not_followed() {
    let target = everywhere().await;
    let to = format!("http://127.0.0.2:{}/s3cret", target.port);
    let server = Server::answering(move |_, place| {
        let to = if place == 0 { to.clone() } else { "/elsewhere".to_owned() };
        Reply::Says(format!("307 Temporary Redirect\r\nLocation: {to}\r\n"), String::new())
    })
    .await;
    let sink = common::open(&settings(&server.url()));
    let deliveries = sink.publish(&common::events("order", 1)).await.unwrap();
    let told = format!("http://127.0.0.2:{}", target.port);
    assert!(
        matches!(&deliveries[..], [Delivery::Refused { why }] if why.contains(&told) && !why.contains("s3cret")),
        "{deliveries:?}"
    );
    let deliveries = sink.publish(&common::events("order", 1)).await.unwrap();
    assert!(matches!(&deliveries[..], [Delivery::Refused { .. }]), "{deliveries:?}");
    assert_eq!((target.connections(), server.requests().len()), (0, 2));
}

/// The addresses that a proxy connects to could not be checked.
#[tokio::test(flavor = "multi_thread")]
async fn no_proxy_of_the_environment_is_used() {
    let proxy = Server::at("127.0.0.2:0", |_, _| Reply::status("204 No Content")).await;
    let url = format!("http://127.0.0.2:{}", proxy.port);
    let (webhook, _) = module_path!().rsplit_once("::").unwrap();
    let mut again = alone::command(webhook, "events_arrive_once_and_as_they_are");
    again.env_remove("no_proxy").env_remove("NO_PROXY");
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        again.env(name, &url);
    }
    tokio::task::block_in_place(|| alone::assert_passes(&mut again));
    assert_eq!(proxy.connections(), 0);
}
