//! Attacks on sign-in with a provider.

use std::time::Duration;

use milepost_server::Limits;
use milepost_testkit::identity_provider::{CLIENT_ID, IdentityProvider, Signature};
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};

use crate::api::oidc::{Returning, location, refused, rules, with_limits, with_provider};
use crate::api::place::Place;
use crate::api::sessions::cookie;

pub(crate) async fn a_sign_in_is_used_once_and_in_its_browser(place: Place) {
    let (_provider, server) = with_provider(&place).await;
    let (ada, eve) = (server.returning("/").await, server.returning("/").await);
    let another = |cookie: &str, path: &str| Returning { cookie: cookie.to_owned(), path: path.to_owned() };
    let parameter = |path: &str, name: &str| {
        let url: Url = format!("http://x{path}").parse().unwrap();
        url.query_pairs().find(|(its, _)| its == name).unwrap().1.into_owned()
    };
    let (state, code) = (parameter(&ada.path, "state"), parameter(&ada.path, "code"));
    let path = |state: &str, code: &str| format!("/sign-in/oidc/callback?state={state}&code={code}");
    for (what, attack) in [
        ("in another browser", another(&eve.cookie, &ada.path)),
        ("without a cookie", another("a=b", &ada.path)),
        ("with another state", another(&ada.cookie, &path("guessed", &code))),
        ("without a state", another(&ada.cookie, &format!("/sign-in/oidc/callback?code={code}"))),
        ("with two cookies", another(&format!("{}; {}", ada.cookie, eve.cookie), &ada.path)),
    ] {
        let page = refused(server.receives(&attack).await, StatusCode::UNAUTHORIZED).await;
        assert!(page.contains("This sign-in has ended"), "{what}: {page}");
    }
    let swapped = another(&eve.cookie, &path(&parameter(&eve.path, "state"), &code));
    let page = refused(server.receives(&swapped).await, StatusCode::UNAUTHORIZED).await;
    assert!(page.contains("is not valid"), "PKCE binds a code to its sign-in: {page}");
    refused(server.receives(&eve).await, StatusCode::UNAUTHORIZED).await;

    let other_issuer =
        another(&ada.cookie, &format!("{}&iss=https%3A%2F%2Fevil.example", path(&state, &code)));
    let third = server.returning("/").await;
    let mixed_up =
        another(&third.cookie, &other_issuer.path.replace(&state, &parameter(&third.path, "state")));
    refused(server.receives(&mixed_up).await, StatusCode::UNAUTHORIZED).await;

    assert!(cookie(&server.receives(&ada).await).is_some(), "attacks did not end it");
    let page = refused(server.receives(&ada).await, StatusCode::UNAUTHORIZED).await;
    assert!(page.contains("This sign-in has ended"), "{page}");
}

/// Asserts that nobody signs in. A token without a needed claim is no token, so that the response is not valid.
async fn assert_nobody_signs_in(server: &Place, why: &impl std::fmt::Debug) {
    let answer = server.signs_in().await;
    let is_refused = [StatusCode::UNAUTHORIZED, StatusCode::BAD_GATEWAY].contains(&answer.status());
    assert!(is_refused && cookie(&answer).is_none(), "{why:?}: {answer:?}");
}

pub(crate) async fn an_id_token_that_is_not_of_this_sign_in_is_refused(place: Place) {
    let (provider, server) = with_provider(&place).await;
    let (good, now) = (provider.answers().claims.clone(), jiff::Timestamp::now().as_second());
    let changed = |claims: &Value| {
        let mut all = good.as_object().unwrap().clone();
        all.extend(claims.as_object().unwrap().clone());
        Value::Object(all)
    };
    for claims in [
        json!({"iss": "https://evil.example"}),
        json!({"iss": format!("{}/", provider.issuer())}),
        json!({"iss": null}),
        json!({"aud": "another"}),
        json!({"aud": [CLIENT_ID, "another"], "azp": CLIENT_ID}),
        json!({"aud": null}),
        json!({"azp": "another"}),
        json!({"nonce": "guessed"}),
        json!({"nonce": null}),
        json!({"exp": now - 120}),
        json!({"exp": null}),
        json!({"iat": now + 120}),
        json!({"iat": now - 3_600}),
        json!({"iat": null}),
        json!({"nbf": now + 120}),
        json!({"sub": null}),
    ] {
        provider.answers().claims = changed(&claims);
        assert_nobody_signs_in(&server, &claims).await;
    }
    let accepted: [fn(i64) -> Value; 3] = [
        |now| json!({"exp": now - 20}),
        |now| json!({"iat": now + 20}),
        |_| json!({"aud": [CLIENT_ID], "azp": CLIENT_ID}),
    ];
    for claims in accepted {
        let claims = claims(jiff::Timestamp::now().as_second());
        provider.answers().claims = changed(&claims);
        assert!(cookie(&server.signs_in().await).is_some(), "{claims}");
    }
    provider.answers().claims = good;
    for signature in [
        Signature::None,
        Signature::Hs256OfPublicKey,
        Signature::Hs256OfClientSecret,
        Signature::OfOtherText,
        Signature::Es256,
    ] {
        provider.answers().signature = signature;
        assert_nobody_signs_in(&server, &signature).await;
    }
    provider.answers().signature = Signature::Rs256;
    for header in [
        json!({"crit": ["b64"]}),
        json!({"alg": "HS256"}),
        json!({"kid": "another"}),
        json!({"typ": "at+jwt"}),
    ] {
        provider.answers().header = header.clone();
        assert_nobody_signs_in(&server, &header).await;
    }
    provider.answers().header =
        json!({"jku": "https://evil.example/keys", "jwk": {"kty": "oct", "k": "AA"}, "kid": null});
    assert!(cookie(&server.signs_in().await).is_some(), "keys in a token are ignored");
}

pub(crate) async fn a_provider_that_sends_secrets_elsewhere_is_refused(place: Place) {
    for (name, url, told) in [
        ("token_endpoint", "http://evil.example/token", "a URL without TLS"),
        ("authorization_endpoint", "http://evil.example/authorize", "a URL without TLS"),
        ("end_session_endpoint", "http://evil.example/end", "a URL without TLS"),
        ("jwks_uri", "http://evil.example/keys", "has no TLS"),
        ("issuer", "https://evil.example", "names another issuer"),
    ] {
        let (provider, server) = with_provider(&place).await;
        provider.answers().configuration.insert(name.to_owned(), json!(url));
        let page = refused(server.begins("/").await, StatusCode::BAD_GATEWAY).await;
        assert!(page.contains(told) && !page.contains("evil.example"), "{name}: {page}");
    }
    let (provider, server) = with_provider(&place).await;
    let methods = json!(["client_secret_post"]);
    provider.answers().configuration.insert("token_endpoint_auth_methods_supported".to_owned(), methods);
    assert!(cookie(&server.signs_in().await).is_some(), "the secret may be in the body");
}

pub(crate) async fn nobody_is_sent_to_another_server_after_signing_in(place: Place) {
    let (_provider, server) = with_provider(&place).await;
    let long = format!("/jobs?q={}", "x".repeat(2_000));
    for (next, expected) in [
        ("/jobs?state=failed&kind=a%20b", "/jobs?state=failed&kind=a%20b"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
        (&long, "/"),
    ] {
        let answer = server.receives(&server.returning(next).await).await;
        assert!(cookie(&answer).is_some());
        assert_eq!(answer.headers()["location"], expected, "{next}");
    }
}

pub(crate) async fn the_provider_returns_to_the_configured_url(place: Place) {
    let (_provider, server) = with_provider(&place).await;
    for (header, value) in
        [("host", "evil.example"), ("x-forwarded-host", "evil.example"), ("x-forwarded-proto", "https")]
    {
        let begun = server.request(Method::GET, "/sign-in/oidc").header(header, value).send().await.unwrap();
        let url = location(&begun);
        let (_, back) = url.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap();
        assert_eq!(back, format!("http://{}/sign-in/oidc/callback", server.address()), "{header}");
        assert!(!url.as_str().contains("evil"), "{url}");
    }
}

pub(crate) async fn nobody_begins_too_many_sign_ins(place: Place) {
    let provider = IdentityProvider::start().await;
    let server = with_limits(&place, rules(provider.issuer()), Limits::default()).await;
    let refused = async || {
        let answer = server.begins("/").await;
        assert!(
            [StatusCode::SEE_OTHER, StatusCode::TOO_MANY_REQUESTS].contains(&answer.status()),
            "{answer:?}"
        );
        answer.status() == StatusCode::TOO_MANY_REQUESTS
    };
    let (mut begun, all) = (0, Duration::from_secs(60));
    let many = async {
        while !refused().await {
            begun += 1;
        }
    };
    tokio::time::timeout(all, many).await.expect("they are limited");
    assert!(begun >= 100, "only {begun}");
}
