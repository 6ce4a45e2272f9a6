//! Tests of sign-in with a provider.

use milepost_core::limit::Rate;
use milepost_core::oidc::RoleRules;
use milepost_core::token::Role;
use milepost_server::{AccessOptions, Limits, OidcOptions, Options};
use milepost_testkit::identity_provider::{CLIENT_ID, CLIENT_SECRET, Fault, IdentityProvider, Signature};
use milepost_testkit::wait;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::api::place::Place;
use crate::api::sessions::{FORM, cookie};

pub(super) fn rules(issuer: &str) -> RoleRules {
    let group = |name: &str| vec![name.to_owned()];
    RoleRules {
        issuer: issuer.to_owned(),
        client_id: CLIENT_ID.to_owned(),
        claim: "groups".to_owned(),
        roles: vec![(Role::Admin, group("milepost-admins")), (Role::Operator, group("milepost-operators"))],
        default_role: None,
        name_claim: "email".to_owned(),
    }
}

/// Starts a server on the store of `place` whose users sign in with this provider, as often as the test does.
pub(super) async fn with_rules(place: &Place, rules: RoleRules) -> Place {
    let often = Rate::new(10_000.0, 10_000);
    with_limits(place, rules, Limits { sign_ins: often, unknown_tokens: often, ..Limits::default() }).await
}

/// Starts a server on the store of `place` whose users sign in with this provider.
pub(super) async fn with_limits(place: &Place, rules: RoleRules, limits: Limits) -> Place {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let oidc = OidcOptions {
        rules,
        client_secret: CLIENT_SECRET.to_owned(),
        scopes: vec!["openid".to_owned(), "email".to_owned()],
        button: "Sign in with Acme".to_owned(),
        external_url: format!("http://{}", listener.local_addr().unwrap()),
    };
    let access = AccessOptions { oidc: Some(oidc), ..AccessOptions::default() };
    Place::serve_on(listener, place.store.clone(), Options { access, limits, ..Options::default() })
}

/// Starts a provider, and a server whose users sign in with it.
pub(super) async fn with_provider(place: &Place) -> (IdentityProvider, Place) {
    let provider = IdentityProvider::start().await;
    let server = with_rules(place, rules(provider.issuer())).await;
    (provider, server)
}

/// A sign-in of a browser that the provider has sent back.
pub(super) struct Returning {
    /// The cookie of the sign-in.
    pub(super) cookie: String,
    /// The path to which the provider sent the browser, with its parameters.
    pub(super) path: String,
}

pub(super) fn location(answer: &Response) -> Url {
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    answer.headers()["location"].to_str().unwrap().parse().unwrap()
}

/// Returns the cookie of the sign-in that a response sets.
fn sign_in_cookie(answer: &Response) -> Option<String> {
    let mut all = answer.headers().get_all("set-cookie").iter().map(|set| set.to_str().unwrap());
    let set = all.find(|set| set.starts_with("milepost_sign_in="))?;
    assert!(set.contains("; Path=/; HttpOnly; SameSite=Lax"), "{set}");
    Some(set.split(';').next().unwrap().to_owned())
}

impl Place {
    pub(super) async fn begins(&self, next: &str) -> Response {
        let next = percent_encoding::utf8_percent_encode(next, percent_encoding::NON_ALPHANUMERIC);
        self.request(Method::GET, &format!("/sign-in/oidc?next={next}")).send().await.unwrap()
    }

    /// Begins a sign-in, and goes to the provider and back to this server.
    pub(super) async fn returning(&self, next: &str) -> Returning {
        let begun = self.begins(next).await;
        let cookie = sign_in_cookie(&begun).expect("a cookie");
        let client = Client::builder().redirect(Policy::none()).build().unwrap();
        let answer = client.get(location(&begun)).send().await.unwrap();
        let back = location(&answer);
        assert_eq!(back.origin().ascii_serialization(), format!("http://{}", self.address()));
        Returning { cookie, path: format!("{}?{}", back.path(), back.query().unwrap()) }
    }

    /// Returns a page of a session, and the CSRF token of its forms.
    async fn first_page(&self, session: &str) -> (String, String) {
        let html = self.request(Method::GET, "/queues").header("cookie", session).send().await.unwrap();
        let html = html.text().await.unwrap();
        let csrf = html.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
        (html.clone(), csrf.to_owned())
    }

    pub(super) async fn receives(&self, Returning { cookie, path }: &Returning) -> Response {
        self.request(Method::GET, path).header("cookie", cookie).send().await.unwrap()
    }

    /// Signs in with the provider, and returns the response to the browser that comes back.
    pub(super) async fn signs_in(&self) -> Response {
        self.receives(&self.returning("/queues").await).await
    }
}

/// Asserts that nobody signed in, and returns the page.
pub(super) async fn refused(answer: Response, status: StatusCode) -> String {
    assert_eq!((answer.status(), cookie(&answer)), (status, None));
    let page = answer.text().await.unwrap();
    assert!(page.contains("role=\"alert\"") && page.contains("name=\"token\""), "{page}");
    page
}

pub(crate) async fn somebody_signs_in_with_the_account_of_their_company(place: Place) {
    let (provider, server) = with_provider(&place).await;
    let (status, page) = server.page("/sign-in?next=/queues").await;
    let link = format!("href=\"http://{}/sign-in/oidc?next=%2Fqueues\"", server.address());
    assert!(status.is_success() && page.contains("Sign in with Acme") && page.contains(&link), "{page}");

    let begun = server.begins("/queues").await;
    let asked: Vec<_> = location(&begun).query_pairs().into_owned().collect();
    assert!(asked.contains(&("scope".to_owned(), "openid email".to_owned())), "{asked:?}");
    assert!(asked.iter().all(|(_, value)| !value.contains(CLIENT_SECRET)), "{asked:?}");
    let answer = server.signs_in().await;
    assert_eq!(
        (answer.status(), &answer.headers()["location"]),
        (StatusCode::SEE_OTHER, &"/queues".parse().unwrap())
    );
    assert_eq!(
        sign_in_cookie(&answer).as_deref(),
        Some("milepost_sign_in="),
        "the cookie of the sign-in is removed"
    );
    let session = cookie(&answer).expect("a session");
    assert_eq!(server.looks(&session).await.status(), StatusCode::OK);

    let (html, csrf) = server.first_page(&session).await;
    assert!(html.contains("<span>ada@example.org</span>"), "{html}");
    let act =
        server.by_page(Method::PUT, "/v1/queues/q").header("cookie", &session).header("x-csrf-token", csrf);
    assert_eq!(act.json(&json!({"paused": true})).send().await.unwrap().status(), StatusCode::OK);
    let audit = place.token(Role::Admin).await;
    let audit = server.request(Method::GET, "/v1/audit").bearer_auth(audit.reveal()).send().await.unwrap();
    assert!(audit.text().await.unwrap().contains("\"oidc:ada@example.org\""));
    let (_, csrf) = server.first_page(&session).await;
    let repair = server
        .by_page(Method::POST, "/v1/doctor/repair")
        .header("cookie", &session)
        .header("x-csrf-token", csrf);
    let repair = repair.json(&json!({"checks": ["queue_left"]})).send().await.unwrap();
    assert_eq!(repair.status(), StatusCode::FORBIDDEN, "an operator is no admin");
    assert_eq!(provider.calls("configuration"), 1, "it is cached");
}

pub(crate) async fn whoever_signs_out_is_led_to_the_provider(place: Place) {
    let (provider, server) = with_provider(&place).await;
    let sign_out = async |session: &str| {
        let (_, csrf) = server.first_page(session).await;
        let out =
            server.by_page(Method::POST, "/sign-out").header("cookie", session).header("content-type", FORM);
        let out = out.body(format!("csrf={csrf}")).send().await.unwrap();
        assert_eq!(cookie(&out).as_deref(), Some("milepost="));
        assert_eq!(server.looks(session).await.status(), StatusCode::UNAUTHORIZED);
        (out.status(), out.text().await.unwrap())
    };
    let session = cookie(&server.signs_in().await).expect("a session");
    let (status, page) = sign_out(&session).await;
    let url = format!("url={}/end?client_id=milepost&#38;post_logout_redirect_uri=", provider.issuer());
    assert!(status == StatusCode::OK && page.contains(&url), "{page}");
    let session = server.signed_in(&place.token(Role::Viewer).await).await;
    assert_eq!(sign_out(&session).await.0, StatusCode::SEE_OTHER, "a token is not known to the provider");
    provider.answers().configuration.insert("end_session_endpoint".to_owned(), Value::Null);
    let other = with_rules(&place, rules(provider.issuer())).await;
    let session = cookie(&other.signs_in().await).expect("a session");
    let (_, csrf) = other.first_page(&session).await;
    let out =
        other.by_page(Method::POST, "/sign-out").header("cookie", &session).header("x-csrf-token", csrf);
    assert_eq!(
        out.send().await.unwrap().status(),
        StatusCode::SEE_OTHER,
        "not every provider has such a page"
    );
}

pub(crate) async fn a_key_that_is_new_is_read_and_not_too_often(place: Place) {
    let (provider, server) = with_provider(&place).await;
    assert!(cookie(&server.signs_in().await).is_some());
    {
        let mut answers = provider.answers();
        (answers.signature, answers.published) = (Signature::Es256, vec![Signature::Rs256, Signature::Es256]);
    }
    refused(server.signs_in().await, StatusCode::UNAUTHORIZED).await;
    assert_eq!(provider.calls("keys"), 1, "they were read just now");
    wait::until("the new key is read", async || cookie(&server.signs_in().await).is_some()).await;
    assert_eq!(provider.calls("keys"), 2);
    provider.answers().signature = Signature::Rs256;
    assert!(cookie(&server.signs_in().await).is_some(), "the previous key is still published");
}

pub(crate) async fn people_have_the_role_of_their_groups(place: Place) {
    let (provider, server) = with_provider(&place).await;
    let of = async |claims: Value| {
        provider.answers().claims = claims;
        server.signs_in().await
    };
    let admin =
        of(json!({"email": "Ада@example.org", "groups": ["x", "milepost-admins", "milepost-operators"]}))
            .await;
    let admin = cookie(&admin).expect("a session");
    let audit = server.request(Method::GET, "/audit").header("cookie", &admin).send().await.unwrap();
    assert_eq!(audit.status(), StatusCode::OK);
    assert!(audit.text().await.unwrap().contains("<span>Ада@example.org</span>"));
    for (claims, told) in [
        (json!({"email": "bob@example.org", "groups": ["staff"]}), "no value of the claim `groups`"),
        (
            json!({"email": "bob@example.org", "groups": ["worker", "admin", "MILEPOST-ADMINS"]}),
            "has no role",
        ),
        (json!({"email": "bob@example.org"}), "has no role"),
        (json!({"groups": ["milepost-admins"]}), "no text in the claim `email`"),
        (json!({"email": "a\u{202e}da@example.org", "groups": ["milepost-admins"]}), "not usable as a name"),
        (json!({"email": "x".repeat(300), "groups": ["milepost-admins"]}), "not usable as a name"),
        (
            json!({"email": "ada@example.org", "email_verified": false, "groups": ["milepost-admins"]}),
            "not verified",
        ),
    ] {
        let page = refused(of(claims).await, StatusCode::FORBIDDEN).await;
        assert!(page.replace("&#39;", "'").contains(told), "{told}: {page}");
        assert!(!page.contains("bob@") && !page.contains("staff"), "{page}");
    }
    let many: Vec<String> = (0..5_000).map(|number| format!("group-{number}")).collect();
    refused(of(json!({"email": "ada@example.org", "groups": many})).await, StatusCode::FORBIDDEN).await;
    let huge: Vec<String> = (0..100_000).map(|number| format!("group-{number}")).collect();
    let page =
        refused(of(json!({"email": "ada@example.org", "groups": huge})).await, StatusCode::BAD_GATEWAY).await;
    assert!(page.contains("more than 524288 bytes"), "{page}");

    let by_default = RoleRules { default_role: Some(Role::Viewer), ..rules(provider.issuer()) };
    let server = with_rules(&place, by_default).await;
    provider.answers().claims = json!({"email": "bob@example.org"});
    let viewer = cookie(&server.signs_in().await).expect("a session");
    let put =
        server.by_page(Method::PUT, "/v1/queues/q").header("cookie", &viewer).json(&json!({"paused": true}));
    assert_eq!(put.send().await.unwrap().status(), StatusCode::FORBIDDEN);
    assert_eq!(server.looks(&viewer).await.status(), StatusCode::OK);
}

pub(crate) async fn a_session_ends_when_the_configuration_gives_its_role_no_more(place: Place) {
    let (provider, server) = with_provider(&place).await;
    let session = cookie(&server.signs_in().await).expect("a session");
    let same = with_rules(&place, rules(provider.issuer())).await;
    assert_eq!(same.looks(&session).await.status(), StatusCode::OK, "it is valid on all servers");
    let group = vec!["milepost-operators".to_owned()];
    let rules = rules(provider.issuer());
    for (what, changed) in [
        ("another role", RoleRules { roles: vec![(Role::Viewer, group.clone())], ..rules.clone() }),
        ("no role", RoleRules { roles: Vec::new(), default_role: Some(Role::Admin), ..rules.clone() }),
        ("another client", RoleRules { client_id: "another".to_owned(), ..rules.clone() }),
    ] {
        let changed = with_rules(&place, changed).await;
        assert_eq!(changed.looks(&session).await.status(), StatusCode::UNAUTHORIZED, "{what}");
    }
    place.token(Role::Viewer).await;
    let closed = async || place.looks(&session).await.status() == StatusCode::UNAUTHORIZED;
    wait::until("a server without a provider refuses the session", closed).await;
    assert_eq!(server.looks(&session).await.status(), StatusCode::OK);
}

pub(crate) async fn a_provider_that_fails_is_reported_without_its_words(place: Place) {
    let (provider, server) = with_provider(&place).await;
    let (token, issuer) = (place.token(Role::Viewer).await, provider.issuer().to_owned());
    let check = |page: &str, told: &str| {
        assert!(page.contains(told), "{told}: {page}");
        assert!(!page.contains(CLIENT_SECRET) && !page.contains("proxy is in the way"), "{page}");
        assert!(!page.contains(&issuer), "{page}");
    };
    let faults = [
        (Fault::Status500, "its response has the status 500"),
        (Fault::Redirect, "its response has the status 307"),
        (Fault::NotJson, "its response is not valid"),
        (Fault::Huge, "its response has more than"),
        (Fault::Silence, "it did not respond within 10 s"),
    ];
    for (call, faults) in [("configuration", &faults[..]), ("keys", &faults[..1])] {
        for (fault, told) in faults {
            provider.answers().faults = vec![(call, *fault)];
            let fails = async || {
                let page = refused(server.begins("/").await, StatusCode::BAD_GATEWAY).await;
                // The previous failure is returned for two seconds.
                let is_told = page.contains(told);
                if is_told {
                    check(&page, told);
                }
                is_told
            };
            wait::until(told, fails).await;
            server.signed_in(&token).await;
        }
    }
    provider.answers().faults.clear();
    wait::until("the provider is found", async || server.begins("/").await.status() == StatusCode::SEE_OTHER)
        .await;
    for (fault, status, told) in [
        (Fault::Status500, StatusCode::BAD_GATEWAY, "its response is not valid"),
        (Fault::NotJson, StatusCode::BAD_GATEWAY, "its response is not valid"),
        (Fault::Huge, StatusCode::BAD_GATEWAY, "its response has more than"),
        (Fault::Redirect, StatusCode::BAD_GATEWAY, "its response is not valid"),
    ] {
        provider.answers().faults = vec![("token", fault)];
        check(&refused(server.signs_in().await, status).await, told);
    }
    assert_eq!(provider.calls("keys"), 2, "no redirect was followed");
    for (error, told) in
        [("access_denied", "(access_denied)"), ("%3Cb%3ECall%200800", "without a known reason")]
    {
        let Returning { cookie, path } = server.returning("/").await;
        let state = path.split('&').find(|part| part.starts_with("state=")).unwrap().to_owned();
        let denied = Returning {
            cookie,
            path: format!("/sign-in/oidc/callback?{state}&error={error}&error_description=Call"),
        };
        let page = refused(server.receives(&denied).await, StatusCode::UNAUTHORIZED).await;
        assert!(page.contains(told) && !page.contains("Call"), "{page}");
    }
}

pub(crate) async fn a_server_with_a_provider_is_closed_without_tokens(place: Place) {
    let (_provider, server) = with_provider(&place).await;
    assert_eq!(server.get("/v1/queues").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        place.get("/v1/queues").await.status,
        StatusCode::OK,
        "one without a provider is open on this machine"
    );
    let none = place.get("/sign-in/oidc").await;
    assert_eq!((none.status, none.code()), (StatusCode::NOT_FOUND, "no_such_path"));
    assert_eq!(place.get("/sign-in/oidc/callback").await.status, StatusCode::NOT_FOUND);
}
