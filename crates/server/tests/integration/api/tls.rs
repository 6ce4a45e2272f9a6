//! Tests of TLS.

use std::time::Duration;

use milepost_server::{Options, TlsFiles};
use milepost_testkit::tls::Tls;
use milepost_testkit::wait;
use reqwest::{Certificate, Client, Response};

use crate::api::place::{Place, on_sqlite};

fn files(tls: &Tls) -> TlsFiles {
    TlsFiles { cert: tls.certificate(), key: tls.key() }
}

/// Sends a request on a new connection, with a client that trusts this authority.
async fn ask(place: &Place, trusted: &Tls) -> reqwest::Result<Response> {
    let authority = Certificate::from_pem(&std::fs::read(trusted.authority()).unwrap()).unwrap();
    let client = Client::builder().tls_certs_only([authority]).build().unwrap();
    let port = place.address().rsplit_once(':').unwrap().1;
    client.get(format!("https://localhost:{port}/healthz")).send().await
}

#[tokio::test]
async fn a_server_with_a_certificate_speaks_tls_only_and_takes_a_new_one_when_it_is_there() {
    let (_folder, store) = on_sqlite().await;
    let (one, other) = (Tls::create("root"), Tls::create("root"));
    let place = Place::serve_with(store, Options { tls: Some(files(&one)), ..Options::default() }).await;
    let answer = ask(&place, &one).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.headers()["strict-transport-security"].to_str().unwrap().starts_with("max-age="));
    assert!(ask(&place, &other).await.is_err(), "the server does not have the other certificate yet");
    assert!(
        reqwest::get(format!("http://{}/healthz", place.address())).await.is_err(),
        "the server does not respond without TLS"
    );

    // The key is replaced first: until the certificate is replaced too, the previous pair stays in use.
    std::fs::copy(other.key(), one.key()).unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert!(ask(&place, &one).await.is_ok());
    std::fs::copy(other.certificate(), one.certificate()).unwrap();
    wait::until("the new certificate is in use", async || ask(&place, &other).await.is_ok()).await;
}

#[tokio::test]
async fn files_that_tls_cannot_be_spoken_with_are_named() {
    let (one, other) = (Tls::create("root"), Tls::create("root"));
    let told = |files: TlsFiles| files.check().unwrap_err().to_string();
    let missing = told(TlsFiles { cert: "/no/such.pem".into(), ..files(&one) });
    assert!(missing.starts_with("/no/such.pem cannot be used for TLS"), "{missing}");
    let swapped = told(TlsFiles { cert: one.key(), key: one.certificate() });
    assert!(swapped.contains("server.key cannot be used for TLS"), "{swapped}");
    let apart = told(TlsFiles { cert: one.certificate(), key: other.key() });
    assert!(apart.contains("do not match"), "{apart}");
}
