//! Tests of `[serve]`: accepted settings and rejected ones.

use std::time::Duration;

use super::*;
use milepost_core::token::Role;
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
fn sign_in_with_a_provider_is_as_its_section_says() {
    let section = r#"
        [serve]
        external_url = "https://jobs.example.org"

        [serve.oidc]
        issuer = "https://login.example.org/realms/acme"
        client_id = "milepost"
        client_secret = "${SECRET}"
        default_role = "viewer"
    "#;
    let read = |more: &str| {
        let secret = |name: &str| (name == "SECRET").then(|| "a-long-secret".to_owned());
        let config = parse(&format!("{section}{more}"), Path::new("/etc"), secret).unwrap();
        let shown = format!("{:?} {}", config.serve, config.secrets.hide("a-long-secret".to_owned()));
        assert!(!shown.contains("a-long-secret"), "{shown}");
        let mut options = Options::default();
        config.serve.apply(&mut options, &config.folder);
        options.access.oidc.unwrap()
    };
    let oidc = read("");
    assert_eq!(
        (oidc.client_secret.as_str(), oidc.external_url.as_str()),
        ("a-long-secret", "https://jobs.example.org")
    );
    assert_eq!(oidc.scopes, ["openid", "email", "profile"]);
    assert_eq!((oidc.rules.claim.as_str(), oidc.rules.name_claim.as_str()), ("groups", "email"));
    assert_eq!(oidc.rules.default_role, Some(Role::Viewer));
    assert!(!format!("{oidc:?}").contains("a-long-secret"));

    let oidc = read(
        "roles = { admin = [\"a\"], viewer = [\"b\", \"c\"] }\nclaim = \"realm_access.roles\"\nname_claim = \"sub\"\nbutton = \"Acme\"\nscopes = [\"openid\"]",
    );
    let groups = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let expected =
        [(Role::Admin, groups(&["a"])), (Role::Operator, Vec::new()), (Role::Viewer, groups(&["b", "c"]))];
    assert_eq!(oidc.rules.roles, expected);
    assert_eq!((oidc.rules.claim.as_str(), oidc.rules.name_claim.as_str()), ("realm_access.roles", "sub"));
    assert_eq!((oidc.button.as_str(), oidc.scopes.as_slice()), ("Acme", &groups(&["openid"])[..]));
}

#[test]
fn sign_in_with_a_provider_that_cannot_be_is_refused() {
    let with = |lines: &str| {
        let needed = "client_id = \"m\"\nclient_secret = \"s\"";
        format!("[serve]\nexternal_url = \"https://a.example\"\n[serve.oidc]\n{lines}\n{needed}\n")
    };
    let issuer = "issuer = \"https://b.example\"";
    let role = "default_role = \"viewer\"";
    for (text, begins, remedy) in [
        (
            with(&format!("issuer = \"http://b.example\"\n{role}")),
            "4:10 the issuer of the provider cannot be used: it must begin with https://",
            "realms/acme",
        ),
        (with(issuer), "3:1 no role is granted", "default_role"),
        (with(&format!("{issuer}\nroles = {{}}")), "3:1 no role is granted", "default_role"),
        (
            with(&format!("{issuer}\nroles = {{ worker = [\"w\"] }}\n{role}")),
            "5:11 unknown key worker in serve.oidc.roles",
            "admin, operator, viewer",
        ),
        (with(&format!("{issuer}\ndefault_role = \"worker\"")), "5:16 serve.oidc.default_role", "viewer"),
        (
            with(&format!("{issuer}\n{role}\nroles = {{ admin = [\"\"] }}")),
            "6:20 a group without a name",
            "remove",
        ),
        (with(&format!("{issuer}\n{role}\nscopes = [\"openid email\"]")), "6:11 not a scope", "each scope"),
        (
            with(&format!("{issuer}\n{role}")).replace("https://a", "http://a"),
            "2:16 the external URL",
            "jobs.example.org",
        ),
        (
            with(&format!("{issuer}\n{role}")).replace("a.example", "a.example/x"),
            "2:16 the external URL",
            "jobs.example.org",
        ),
        (
            with(&format!("{issuer}\n{role}")).replace("external_url = \"https://a.example\"\n", ""),
            "2:1 sign-in with a provider needs external_url",
            "[serve]",
        ),
    ] {
        assert_faults(&text, &[(begins, remedy)]);
    }
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
