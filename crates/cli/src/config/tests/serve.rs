//! Tests of `[serve]`: accepted settings and rejected ones.

use std::time::Duration;

use super::*;
use milepost_server::Options;

#[test]
fn a_server_is_as_its_section_says() {
    let text = r#"
        [serve]
        listen = "[::]:8443"
        tls_cert = "cert.pem"
        tls_key = "/keys/key.pem"
        require_tokens = true
        allowed_hosts = ["jobs.example.org"]
        rate = "30/m"
        connections = 20
        session_idle = "5m"
        session_max = "1h"
    "#;
    let config = parse(text, Path::new("/etc"), |_| None).unwrap();
    assert_eq!(config.serve.listen(), Some("[::]:8443".parse().unwrap()));
    let mut options = Options::default();
    config.serve.apply(&mut options, &config.folder);
    let tls = options.tls.unwrap();
    assert_eq!((tls.cert.to_str(), tls.key.to_str()), (Some("/etc/cert.pem"), Some("/keys/key.pem")));
    let (access, limits) = (options.access, options.limits);
    assert!(access.require_tokens && access.allowed_hosts == ["jobs.example.org"]);
    assert!(!access.open_to_all && !access.behind_tls, "insecure options exist on the command line only");
    assert_eq!(access.sessions.idle, Duration::from_secs(300));
    assert_eq!(access.sessions.absolute, Duration::from_secs(3600));
    let rate = limits.rate.unwrap();
    assert_eq!((rate.per_second, rate.burst, limits.connections), (0.5, 1, 20));
}

#[test]
fn a_server_that_cannot_be_is_refused() {
    let cases = [
        ("[serve]\nlisten = \"localhost\"", "2:10 not a listen address", "127.0.0.1:7070"),
        ("[serve]\ntls_cert = \"a\"", "2:12 tls_cert without tls_key", "both"),
        ("[serve]\ntls_key = \"a\"", "2:11 tls_key without tls_cert", "both"),
        ("[serve]\nallowed_hosts = [\"https://a\"]", "2:18 not a host name", "without scheme"),
        (
            "[serve]\ntrusted_proxies = [\"proxy\"]",
            "2:20 \"proxy\" is neither an address nor a network",
            "10.0.0.0/8",
        ),
        (
            "[serve]\ntrusted_proxies = [\"10.0.0.1/8\"]",
            "2:20 10.0.0.1/8 has host bits set; the network is 10.0.0.0/8",
            "10.0.0.0/8",
        ),
        ("[serve]\nforwarded_header = \"x-real-ip\"", "2:20 serve.forwarded_header", "x-forwarded-for"),
        ("[serve]\nrate = \"fast\"", "2:8 serve.rate = \"fast\" is not a rate", "10/s"),
        ("[serve]\ninsecure_no_tls = true", "2:1 unknown key insecure_no_tls in serve", "known keys"),
    ];
    for (text, begins, remedy) in cases {
        assert_faults(text, &[(begins, remedy)]);
    }
}
