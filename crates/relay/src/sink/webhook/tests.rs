//! Tests of webhooks whose host name resolves to another address later. They need a custom resolver.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use milepost_core::event::Aggregate;
use milepost_core::ident::EventId;
use serde_json::value::RawValue;
use tokio::net::TcpListener;

use super::*;

fn event() -> Event {
    Event {
        id: EventId::new(),
        aggregate: Aggregate::new("order", "17"),
        sequence: 1,
        event_type: "order.paid".to_owned(),
        payload: RawValue::from_string("1".to_owned()).unwrap(),
        headers: BTreeMap::new(),
        emitted_at: "2026-03-01T12:00:00Z".parse().unwrap(),
    }
}

/// Starts a server that closes every connection immediately. Returns its port and the number of connections.
async fn server(address: &str) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let (port, connections) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let count = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    (port, connections)
}

/// Returns a webhook whose host name resolves to these lists of addresses, one list for each lookup. Only 127.0.0.2 is allowed.
fn webhook(port: u16, addresses: &[&[&str]]) -> (Webhook, Arc<AtomicUsize>) {
    let config = WebhookConfig {
        url: SecretUrl::from(""),
        secrets: vec!["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD".into()],
        allow_networks: vec!["127.0.0.2/32".to_owned()],
        concurrency: 1,
        source: "milepost".to_owned(),
        timeout_ms: 5_000,
    };
    let parsed = |list: &&[&str]| list.iter().map(|address| address.parse().unwrap()).collect();
    let addresses: Vec<Vec<IpAddr>> = addresses.iter().map(parsed).collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let lookup = move |name: String| -> futures::future::BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        assert_eq!(name, "shop.example");
        let answer = addresses[count.fetch_add(1, Ordering::SeqCst).min(addresses.len() - 1)].clone();
        Box::pin(async move { Ok(answer) })
    };
    let url = Url::parse(&format!("http://shop.example:{port}/hook")).unwrap();
    let networks = networks(&config.allow_networks, &url).unwrap();
    (Webhook::guarded(&config, url, Guard::looking_up(networks, lookup)).unwrap(), asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_becomes_another_address_leads_nowhere_else() {
    let (port, refused) = server("127.0.0.1:0").await;
    let (_, allowed) = server(&format!("127.0.0.2:{port}")).await;
    let (webhook, asked) = webhook(port, &[&["127.0.0.2"], &["127.0.0.1"]]);
    // The server closes the connection without a response.
    let deliveries = webhook.publish(&[event()]).await.unwrap();
    assert!(matches!(&deliveries[..], [Delivery::Unknown { .. }]), "{deliveries:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 1, "the checked address is the one connected to");
    let down = webhook.publish(&[event()]).await.unwrap_err();
    assert!(down.why.contains("127.0.0.1 is not a public address"), "{down}");
    assert_eq!((allowed.load(Ordering::SeqCst), refused.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_with_one_address_that_is_refused_is_not_connected_to_at_all() {
    let (port, refused) = server("127.0.0.1:0").await;
    let (_, allowed) = server(&format!("127.0.0.2:{port}")).await;
    for addresses in
        [&["127.0.0.2", "127.0.0.1"], &["127.0.0.1", "127.0.0.2"], &["127.0.0.2", "::ffff:127.0.0.1"]]
    {
        let (webhook, _) = webhook(port, &[addresses]);
        let down = webhook.publish(&[event()]).await.unwrap_err();
        assert!(down.why.contains("127.0.0.1 is not a public address"), "{down}");
    }
    assert_eq!((allowed.load(Ordering::SeqCst), refused.load(Ordering::SeqCst)), (0, 0));
}
