//! Tests with a store on a server that requires encryption.

use std::path::PathBuf;

use crate::support::{Place, Ran};
use milepost_testkit::server::Server;
use milepost_testkit::tls::Tls;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_used_whose_authority_the_system_trusts() {
    let tls = Tls::create("postgres");
    let (_server, address) = Server::with_tls(&tls, "s3cret").await;
    let place = Place::without_store();
    let store = format!("postgres://postgres:s3cret@{address}?sslmode=verify-full");
    let migrate = |authority: Option<PathBuf>| {
        let mut command = place.command(&["--store", &store, "migrate"]);
        command.envs(authority.map(|file| ("SSL_CERT_FILE", file)));
        Ran::from(command.output().unwrap())
    };
    let stranger = migrate(None);
    assert_eq!(stranger.status, 1);
    assert!(stranger.err.contains("UnknownIssuer") && !stranger.err.contains("s3cret"), "{}", stranger.err);
    migrate(Some(tls.authority())).ok();
}
