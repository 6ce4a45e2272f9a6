//! Access tokens and sessions.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use milepost_core::audit::AuditFilter;
use milepost_core::error::StoreError;
use milepost_core::oidc::Person;
use milepost_core::session::{
    FoundUser, NewSession, NewSignIn, ReturnedSignIn, SessionTimes, SessionUser, SignInLimits,
};
use milepost_core::token::{
    Digest, InvalidToken, NewToken, RANDOM_BYTES, Role, Secret, Standing, TokenScope,
};

use milepost_testkit::scene::Scene;
use milepost_testkit::wait;

/// Returns a secret that is different for each number.
fn secret(number: u8) -> Secret {
    Secret::of_random(&[number; RANDOM_BYTES])
}

fn token(name: &str, number: u8) -> NewToken {
    NewToken::new(name, Role::Operator, &secret(number), "tester")
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> InvalidToken {
    match answer {
        Err(StoreError::Token(invalid)) => invalid,
        other => panic!("{other:?}"),
    }
}

async fn standing(scene: &Scene, number: u8) -> Standing {
    scene.store.token(secret(number).prefix()).await.unwrap().expect("the token does not exist").standing()
}

pub async fn a_token_is_found_by_its_prefix_with_what_was_said_of_it(scene: Scene) {
    assert!(!scene.store.has_tokens().await.unwrap());
    let made = scene.store.create_token(&token("ci", 1)).await.unwrap();
    assert!(scene.store.has_tokens().await.unwrap());
    let found = scene.store.token(secret(1).prefix()).await.unwrap().expect("the token does not exist");
    assert_eq!(found.view, made);
    assert_eq!((made.name.as_str(), made.role, made.created_by.as_str()), ("ci", Role::Operator, "tester"));
    assert_eq!((made.expires_at, made.revoked_at, made.last_used_at), (None, None, None));
    assert!(found.hash == secret(1).hash() && found.hash != secret(2).hash());
    assert_eq!(found.standing(), Standing::Valid);
    assert!(scene.store.token(secret(2).prefix()).await.unwrap().is_none());
}

pub async fn a_token_keeps_the_queues_and_kinds_that_it_is_limited_to(scene: Scene) {
    let scope =
        TokenScope { queues: vec!["mail*".to_owned()], kinds: vec!["mail.*".to_owned(), "news".to_owned()] };
    let limited = NewToken { scope: Some(scope.clone()), ..token("limited", 1) };
    let made = scene.store.create_token(&limited).await.unwrap();
    assert_eq!(made.scope.as_ref(), Some(&scope));
    let found = scene.store.token(secret(1).prefix()).await.unwrap().expect("the token does not exist");
    assert_eq!(found.view, made);
    assert!(found.is_of(&secret(1)) && !found.is_of(&secret(2)));
    assert!(found.hash != secret(1).hash(), "earlier releases do not find it");
    scene.store.create_token(&token("unlimited", 2)).await.unwrap();
    let all = scene.store.tokens().await.unwrap();
    assert_eq!(all.iter().map(|token| token.view.scope.is_some()).collect::<Vec<_>>(), [true, false]);
    let audited = scene.store.audit_log(&AuditFilter { limit: 10, ..AuditFilter::default() }).await.unwrap();
    let scopes: Vec<_> = audited.iter().map(|entry| entry.detail["after"].get("scope")).collect();
    assert_eq!(scopes, [None, Some(&serde_json::json!(scope))], "newest first");
    let session = NewSession {
        id: Digest::of("s"),
        user: SessionUser::Token(made.prefix.clone()),
        csrf: "c".to_owned(),
    };
    let times = SessionTimes::default();
    scene.store.begin_session(&session, &times).await.unwrap();
    let session =
        scene.store.session(&session.id, &times, false).await.unwrap().expect("the session does not exist");
    let FoundUser::Token(token_of_session) = session.user else { panic!("{:?}", session.user) };
    assert_eq!(token_of_session.view.scope, Some(scope));
    let empty = NewToken { scope: Some(TokenScope::default()), ..token("empty", 3) };
    let refused = refusal(scene.store.create_token(&empty).await);
    assert!(matches!(refused, InvalidToken::Scope(_)), "{refused}");
}

pub async fn tokens_are_valid_in_their_time_only(scene: Scene) {
    let later = Timestamp::now() + jiff::Span::new().hours(1);
    let ends = NewToken { lasts: Some(Duration::from_millis(1)), ..token("ends", 1) };
    scene.store.create_token(&ends).await.unwrap();
    let starts = NewToken { starts_at: Some(later), lasts: Some(Duration::MAX), ..token("starts", 2) };
    let made = scene.store.create_token(&starts).await.unwrap();
    assert!(made.expires_at.is_some_and(|at| at > later));
    assert_eq!(standing(&scene, 2).await, Standing::NotYet);
    milepost_testkit::wait::until("the token expires", || async {
        standing(&scene, 1).await == Standing::Expired
    })
    .await;
    assert!(scene.store.has_tokens().await.unwrap(), "expired tokens still count");
}

pub async fn a_revoked_token_stays_known_and_leaves_its_name(scene: Scene) {
    scene.store.create_token(&token("ci", 1)).await.unwrap();
    let taken = refusal(scene.store.create_token(&token("ci", 2)).await);
    assert_eq!(taken, InvalidToken::NameTaken("ci".to_owned()));
    let prefix = secret(1).prefix().to_owned();
    assert!(scene.store.revoke_token(&prefix, "tester").await.unwrap());
    assert!(!scene.store.revoke_token(&prefix, "tester").await.unwrap(), "already revoked");
    assert_eq!(standing(&scene, 1).await, Standing::Revoked);
    assert!(!scene.store.has_tokens().await.unwrap());
    scene.store.create_token(&token("ci", 2)).await.unwrap();
    let all = scene.store.tokens().await.unwrap();
    let standings: Vec<Standing> = all.iter().map(|token| token.standing()).collect();
    assert_eq!(standings, [Standing::Revoked, Standing::Valid]);
    let nobody = refusal(scene.store.revoke_token("nobodyxx", "tester").await);
    assert_eq!(nobody, InvalidToken::NoSuchToken("nobodyxx".to_owned()));
}

pub async fn the_use_of_a_token_is_remembered(scene: Scene) {
    scene.store.create_token(&token("ci", 1)).await.unwrap();
    let used = async || {
        scene.store.touch_token(secret(1).prefix()).await.unwrap();
        scene
            .store
            .token(secret(1).prefix())
            .await
            .unwrap()
            .unwrap()
            .view
            .last_used_at
            .expect("the token was never used")
    };
    let first = used().await;
    assert_eq!(used().await, first, "a second use within a minute is not written");
}

fn id(text: &str) -> Digest {
    Digest::of(text)
}

fn holder() -> SessionUser {
    SessionUser::Token(secret(1).prefix().to_owned())
}

async fn begin(scene: &Scene, name: &str) {
    let session = NewSession { id: id(name), user: holder(), csrf: format!("csrf of {name}") };
    scene.store.begin_session(&session, &SessionTimes::default()).await.unwrap();
}

async fn goes_on(scene: &Scene, name: &str, times: &SessionTimes) -> bool {
    scene.store.session(&id(name), times, true).await.unwrap().is_some()
}

pub async fn a_session_is_its_tokens_until_it_is_ended(scene: Scene) {
    let times = SessionTimes::default();
    scene.store.create_token(&token("ada", 1)).await.unwrap();
    begin(&scene, "a").await;
    let session =
        scene.store.session(&id("a"), &times, true).await.unwrap().expect("the session does not exist");
    let FoundUser::Token(token) = session.user else { panic!("{:?}", session.user) };
    assert_eq!((token.view.name.as_str(), session.csrf.as_str()), ("ada", "csrf of a"));
    assert!(!session.rotate);
    assert!(!goes_on(&scene, "b", &times).await);
    scene.store.end_session(&id("a")).await.unwrap();
    assert!(!goes_on(&scene, "a", &times).await);
}

pub async fn a_session_ends_with_its_token(scene: Scene) {
    scene.store.create_token(&token("ada", 1)).await.unwrap();
    begin(&scene, "a").await;
    scene.store.revoke_token(secret(1).prefix(), "tester").await.unwrap();
    assert!(!goes_on(&scene, "a", &SessionTimes::default()).await);
}

pub async fn a_session_is_over_when_it_is_idle_or_old(scene: Scene) {
    scene.store.create_token(&token("ada", 1)).await.unwrap();
    begin(&scene, "a").await;
    let short = Duration::from_millis(20);
    tokio::time::sleep(short * 2).await;
    let times = SessionTimes::default();
    assert!(!goes_on(&scene, "a", &SessionTimes { idle: short, ..times }).await);
    assert!(!goes_on(&scene, "a", &SessionTimes { absolute: short, ..times }).await);
    assert!(goes_on(&scene, "a", &times).await, "each server applies its configured times");
    let session = NewSession { id: id("b"), user: holder(), csrf: "csrf".to_owned() };
    let strict = SessionTimes { absolute: short, ..times };
    scene.store.begin_session(&session, &strict).await.unwrap();
    assert!(!goes_on(&scene, "a", &times).await, "the expired session was deleted");
    assert!(goes_on(&scene, "b", &times).await);
}

pub async fn a_session_goes_on_while_somebody_uses_it_and_not_by_a_page_left_open(scene: Scene) {
    scene.store.create_token(&token("ada", 1)).await.unwrap();
    let times = SessionTimes { idle: Duration::from_secs(2), ..SessionTimes::default() };
    let mut number = 0;
    let name = loop {
        number += 1;
        let name = format!("a{number}");
        begin(&scene, &name).await;
        if is_used_for(&scene, &name, &times, times.idle * 3 / 2).await {
            break name;
        }
    };
    let left = async || scene.store.session(&id(&name), &times, false).await.unwrap().is_some();
    wait::until("the session expires although pages query it", async || !left().await).await;
}

/// Uses a session for this duration. Returns false if the machine was too slow to use it often enough.
async fn is_used_for(scene: &Scene, name: &str, times: &SessionTimes, long: Duration) -> bool {
    let began = Instant::now();
    let mut used = began;
    while began.elapsed() < long {
        let goes_on = goes_on(scene, name, times).await;
        if used.elapsed() > times.idle / 2 {
            return false;
        }
        assert!(goes_on, "the used session has not expired");
        used = Instant::now();
        tokio::time::sleep(times.idle / 10).await;
    }
    true
}

pub async fn the_id_of_a_session_is_changed_once_and_the_old_one_counts_for_a_moment(scene: Scene) {
    scene.store.create_token(&token("ada", 1)).await.unwrap();
    begin(&scene, "a").await;
    let due = SessionTimes { rotate: Duration::ZERO, ..SessionTimes::default() };
    assert!(scene.store.session(&id("a"), &due, true).await.unwrap().is_some_and(|session| session.rotate));
    assert!(scene.store.rotate_session(&id("a"), &id("b")).await.unwrap());
    assert!(!scene.store.rotate_session(&id("a"), &id("c")).await.unwrap(), "the id was already rotated");
    for name in ["a", "b"] {
        let session =
            scene.store.session(&id(name), &due, true).await.unwrap().expect("the session does not exist");
        assert_eq!((session.csrf.as_str(), session.rotate), ("csrf of a", name == "b"), "{name}");
        assert_eq!(session.id, id("b"), "the previous id returns the current one: {name}");
    }
    assert!(scene.store.rotate_session(&id("b"), &id("d")).await.unwrap());
    assert!(!goes_on(&scene, "a", &due).await, "only the previous id is valid");
    scene.store.end_session(&id("b")).await.unwrap();
    assert!(!goes_on(&scene, "d", &due).await, "signing out with the previous id ends the session");
}

pub async fn a_session_of_a_person_has_their_name_and_role(scene: Scene) {
    let times = SessionTimes::default();
    let person = Person { name: "Ада@example.org".to_owned(), role: Role::Operator, grant: id("a rule") };
    let user = SessionUser::Person(person.clone());
    let session = NewSession { id: id("a"), user, csrf: "csrf of a".to_owned() };
    scene.store.begin_session(&session, &times).await.unwrap();
    let found =
        scene.store.session(&id("a"), &times, true).await.unwrap().expect("the session does not exist");
    assert!(matches!(&found.user, FoundUser::Person(its) if *its == person), "{:?}", found.user);
    assert_eq!((found.csrf.as_str(), found.rotate), ("csrf of a", false));
    let idle = SessionTimes { idle: Duration::ZERO, ..times };
    assert!(!goes_on(&scene, "a", &idle).await, "it expires as others do");
    assert!(scene.store.rotate_session(&id("a"), &id("b")).await.unwrap());
    assert!(goes_on(&scene, "b", &times).await);
    assert!(!scene.store.has_tokens().await.unwrap(), "it is no token");
    scene.store.end_session(&id("b")).await.unwrap();
    assert!(!goes_on(&scene, "b", &times).await);
    let worker = Person { role: Role::Worker, ..person };
    let session = NewSession { id: id("c"), user: SessionUser::Person(worker), csrf: "csrf".to_owned() };
    scene.store.begin_session(&session, &times).await.expect_err("people are no workers");
}

fn sign_in(name: &str) -> NewSignIn {
    let of = |what: &str| format!("{what} of {name}");
    NewSignIn {
        id: id(name),
        state: id(&of("state")),
        nonce: of("nonce"),
        verifier: of("verifier"),
        next: format!("/jobs?kind={name}"),
    }
}

async fn end(scene: &Scene, name: &str, state: &str, limits: &SignInLimits) -> Option<ReturnedSignIn> {
    scene.store.end_sign_in(&id(name), &id(state), limits).await.unwrap()
}

pub async fn a_sign_in_is_returned_once_and_only_with_its_state(scene: Scene) {
    let limits = SignInLimits::default();
    for name in ["a", "b"] {
        scene.store.begin_sign_in(&sign_in(name), &limits).await.unwrap();
    }
    for (name, state) in [("a", "state of b"), ("c", "state of a"), ("b", "")] {
        assert!(end(&scene, name, state, &limits).await.is_none(), "{name} with {state}");
    }
    let before = Timestamp::now();
    let ended = end(&scene, "a", "state of a", &limits).await.expect("another state did not end it");
    assert_eq!((ended.nonce.as_str(), ended.verifier.as_str()), ("nonce of a", "verifier of a"));
    assert_eq!(ended.next, "/jobs?kind=a");
    assert!(ended.at.duration_since(before).abs() < jiff::SignedDuration::from_mins(5), "{}", ended.at);
    assert!(end(&scene, "a", "state of a", &limits).await.is_none(), "it is returned once");
    assert!(end(&scene, "b", "state of b", &limits).await.is_some(), "others are not ended");
}

pub async fn a_sign_in_that_takes_too_long_is_over(scene: Scene) {
    let (limits, short) = (SignInLimits::default(), Duration::from_millis(20));
    let short = SignInLimits { lasts: short, ..limits };
    for name in ["a", "b"] {
        scene.store.begin_sign_in(&sign_in(name), &limits).await.unwrap();
    }
    tokio::time::sleep(short.lasts * 2).await;
    assert!(end(&scene, "a", "state of a", &short).await.is_none());
    scene.store.begin_sign_in(&sign_in("c"), &short).await.unwrap();
    assert!(end(&scene, "b", "state of b", &limits).await.is_none(), "the next one deletes it");
    assert!(end(&scene, "c", "state of c", &limits).await.is_some());
}

pub async fn of_too_many_sign_ins_the_oldest_are_deleted(scene: Scene) {
    let limits = SignInLimits { in_progress_max: 3, ..SignInLimits::default() };
    for name in ["a", "b", "c", "d", "e"] {
        scene.store.begin_sign_in(&sign_in(name), &limits).await.unwrap();
        // Each is older than the next one by a clock of milliseconds, too.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (name, is_left) in [("a", false), ("b", false), ("c", true), ("d", true), ("e", true)] {
        let left = end(&scene, name, &format!("state of {name}"), &limits).await;
        assert_eq!(left.is_some(), is_left, "{name}");
    }
}
