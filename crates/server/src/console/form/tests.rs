use axum::body::Body;
use axum::http::Extensions;

use super::*;
use crate::access::Allowed;

#[test]
fn nobody_but_who_may_change_something_has_it_looked_at_anew() {
    use Allowed::{Everything, Nothing};
    for (method, path, sender, may) in [
        (Method::POST, "/jobs/operate", Some(Everything), true),
        (Method::POST, "/jobs/operate", Some(Allowed::Role(Role::Operator)), true),
        (Method::POST, "/jobs/operate", Some(Allowed::Role(Role::Viewer)), false),
        (Method::POST, "/sign-in", Some(Nothing), false),
        (Method::POST, "/nowhere", None, false),
        (Method::POST, "/v1/jobs", Some(Everything), false),
        (Method::GET, "/jobs", Some(Everything), false),
    ] {
        let mut request = Request::new(Body::empty());
        (*request.method_mut(), *request.uri_mut()) = (method, path.parse().unwrap());
        if let Some(allowed) = sender {
            request.extensions_mut().insert(Identity::anonymous(allowed));
        }
        assert_eq!(may_change(&request), may, "{path} {sender:?}");
    }
}

#[test]
fn a_field_that_occurs_twice_is_refused() {
    assert_eq!(fields(b"a=1&b=").unwrap().len(), 2);
    assert!(fields(b"a=1&b=2&a=1").is_err());
}

#[test]
fn a_duration_is_positive_and_a_number_alone_is_in_seconds() {
    let seconds = |wait: &str| {
        let fields = HashMap::from([("wait".to_owned(), wait.to_owned())]);
        let sent = Sent { actor: RequestActor::of(&Extensions::new()), fields, file: None };
        sent.wait().map(|wait| wait.map(|wait| wait.as_secs()))
    };
    let read = ["90s", "10 m", "2h", "45", ""].map(|text| seconds(text).unwrap());
    assert_eq!(read, [Some(90), Some(600), Some(7_200), Some(45), None]);
    for text in ["0s", "0", "-1s", "99999999999999999999d", "soon"] {
        assert!(seconds(text).is_err(), "{text}");
    }
}

#[test]
fn a_form_leads_back_to_this_server_only() {
    for (back, to) in [
        ("/jobs?state=failed", "/jobs?state=failed"),
        ("//elsewhere.example/", "/"),
        ("https://elsewhere.example/", "/"),
        ("/\t/elsewhere.example", "/"),
        ("", "/"),
    ] {
        let fields = HashMap::from([("back".to_owned(), back.to_owned())]);
        let sent = Sent { actor: RequestActor::of(&Extensions::new()), fields, file: None };
        assert_eq!(sent.back(), to);
    }
}
