//! Each channel: what its receiver gets, and how errors are reported.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use milepost_core::alert::{AlertRule, Incident, Notices, Severity};
use milepost_core::ident::IncidentId;
use milepost_notify::{Channel, ChannelConfig, InvalidChannel, Message};
use serde_json::json;

use crate::receiver::Receiver;

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

fn local() -> Vec<String> {
    vec!["127.0.0.0/8".to_owned()]
}

fn notices() -> Notices {
    let at = "2026-11-30T12:00:00Z".parse().unwrap();
    let incident = Incident {
        id: IncidentId::new(),
        rule: AlertRule::JobsFailed,
        subject: "mail in default".to_owned(),
        severity: Severity::Error,
        title: "3 jobs failed: <mail>".to_owned(),
        words: "smtp_down & <!channel>".to_owned(),
        command: "milepost jobs list --state=failed".to_owned(),
        first_seen_at: at,
        last_seen_at: at,
        ended_at: None,
        silence: None,
    };
    Notices { begun: vec![incident], ended: Vec::new() }
}

fn webhook(url: &str) -> ChannelConfig {
    ChannelConfig::Webhook { url: url.into(), secrets: vec![SECRET.into()] }
}

fn mail(url: &str, to: &str) -> ChannelConfig {
    let from = "Milepost <milepost@example.com>".to_owned();
    ChannelConfig::Mail { url: url.into(), from, to: vec![to.to_owned()] }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_gets_a_signed_document() {
    let receiver = Receiver::accepting().await;
    let channel =
        Channel::open(&webhook(&format!("http://127.0.0.1:{}/hook", receiver.port)), &local()).unwrap();
    let notices = notices();
    let message = Message::new("oncall", &notices, Some("https://jobs.example.org"), Timestamp::now());
    channel.send(&message).await.unwrap();
    let got = &receiver.all()[0];
    let mut headers = http_headers(got);
    standardwebhooks::Webhook::new(SECRET).unwrap().verify(got.body.as_bytes(), &headers).unwrap();
    headers.insert("webhook-id", "other".parse().unwrap());
    assert!(standardwebhooks::Webhook::new(SECRET).unwrap().verify(got.body.as_bytes(), &headers).is_err());
    let document = got.json();
    assert_eq!(document["type"], "milepost.alerts");
    assert_eq!(document["id"], got.header("webhook-id"));
    assert_eq!(document["begun"][0]["rule"], "jobs_failed");
    assert_eq!(document["begun"][0]["id"], json!(notices.begun[0].id));
    assert_eq!(document["ended"], json!([]));
}

fn http_headers(got: &crate::receiver::Received) -> reqwest::header::HeaderMap {
    let mut headers = reqwest::header::HeaderMap::new();
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        headers.insert(name, got.header(name).parse().unwrap());
    }
    headers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_gets_a_text_without_markup_of_others() {
    let receiver = Receiver::accepting().await;
    let config = ChannelConfig::Slack {
        url: format!("http://127.0.0.1:{}/services/T/B/x", receiver.port).as_str().into(),
    };
    let channel = Channel::open(&config, &local()).unwrap();
    channel.send(&Message::new("oncall", &notices(), None, Timestamp::now())).await.unwrap();
    let text = receiver.all()[0].json()["text"].as_str().unwrap().to_owned();
    assert!(
        text.starts_with("Error: 3 jobs failed: &lt;mail&gt;\n    smtp_down &amp; &lt;!channel&gt;\n"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_gets_a_mail() {
    let receiver = Receiver::smtp().await;
    let url = format!("smtp://milepost:s3cret%2Fpassword@127.0.0.1:{}?tls=none", receiver.port);
    let channel = Channel::open(&mail(&url, "ops@example.com"), &local()).unwrap();
    channel.send(&Message::new("ops", &notices(), None, Timestamp::now())).await.unwrap();
    let got = &receiver.all()[0];
    assert_eq!(got.header("mail"), "MAIL FROM:<milepost@example.com>");
    assert_eq!(got.header("rcpt"), "RCPT TO:<ops@example.com>");
    let login = got.header("auth").rsplit(' ').next().unwrap();
    assert_eq!(STANDARD.decode(login).unwrap(), b"\0milepost\0s3cret/password");
    assert!(got.body.contains("Subject: Milepost: Error: 3 jobs failed: <mail>\r\n"), "{}", got.body);
    assert!(got.body.contains("From: Milepost <milepost@example.com>\r\n"), "{}", got.body);
    assert!(got.body.contains("Error: 3 jobs failed: <mail>"), "{}", got.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_shows_the_answer_without_secrets() {
    let receiver = Receiver::http(|_| Some("503 Service Unavailable")).await;
    let url = format!("http://127.0.0.1:{}/services/T0123456789/secretsecret", receiver.port);
    let channel = Channel::open(&webhook(&url), &local()).unwrap();
    let error = channel.send(&Message::test("oncall", None, Timestamp::now())).await.unwrap_err().to_string();
    assert!(error.contains("it answered 503 Service Unavailable: busy"), "{error}");
    assert!(!error.contains("secret") && !format!("{channel:?}").contains("secret"), "{error}");
    let receiver = Receiver::smtp().await;
    let url = format!("smtp://milepost:s3cretpassword@127.0.0.1:{}?tls=none", receiver.port);
    let channel = Channel::open(&mail(&url, "nobody@example.com"), &local()).unwrap();
    let error = channel.send(&Message::test("ops", None, Timestamp::now())).await.unwrap_err().to_string();
    assert!(error.contains("no such user") && !error.contains("s3cret"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_are_not_allowed_are_never_reached() {
    let (http, smtp) = (Receiver::accepting().await, Receiver::smtp().await);
    let refused = |config: &ChannelConfig| Channel::open(config, &[]).unwrap_err().to_string();
    let why = refused(&webhook(&format!("https://127.0.0.1:{}/", http.port)));
    assert!(why.contains("127.0.0.1 is not a public address"), "{why}");
    for (url, expected) in [
        (format!("https://localhost:{}/", http.port), "not a public address"),
        (format!("http://localhost:{}/", http.port), "allow_networks"),
    ] {
        let channel = Channel::open(&webhook(&url), &[]).unwrap();
        let why =
            channel.send(&Message::test("oncall", None, Timestamp::now())).await.unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    }
    for (url, expected) in [
        (format!("smtps://localhost:{}", smtp.port), "not a public address"),
        (format!("smtp://127.0.0.1:{}", smtp.port), "not a public address"),
        (format!("smtp://localhost:{}?tls=none", smtp.port), "mail without TLS"),
    ] {
        let channel = Channel::open(&mail(&url, "ops@example.com"), &[]).unwrap();
        let why = channel.send(&Message::test("ops", None, Timestamp::now())).await.unwrap_err().to_string();
        assert!(why.contains(expected), "{url}: {why}");
    }
    assert!(http.all().is_empty() && smtp.all().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_not_sent_without_the_encryption_that_is_configured() {
    let receiver = Receiver::smtp().await;
    let channel =
        Channel::open(&mail(&format!("smtp://127.0.0.1:{}", receiver.port), "ops@example.com"), &local())
            .unwrap();
    let why = channel.send(&Message::test("ops", None, Timestamp::now())).await.unwrap_err().to_string();
    assert!(why.to_uppercase().contains("STARTTLS"), "{why}");
    assert!(receiver.all().is_empty());
}

#[test]
fn settings_that_cannot_be_used_are_named_with_the_remedy() {
    let refused = |config: &ChannelConfig| {
        let InvalidChannel { setting, why } = Channel::open(config, &[]).unwrap_err();
        (setting, why)
    };
    let (setting, why) =
        refused(&ChannelConfig::Webhook { url: "https://example.org".into(), secrets: Vec::new() });
    assert!(setting == "secrets" && why.contains("openssl rand"), "{setting}: {why}");
    let (setting, why) = refused(&webhook("ftp://example.org"));
    assert!(setting == "webhook" && why.contains("https://"), "{setting}: {why}");
    let (setting, why) = refused(&mail("smtp://example.org?tls=maybe", "ops@example.com"));
    assert!(setting == "smtp" && why.contains("smtps://USER"), "{setting}: {why}");
    let (setting, why) = refused(&mail("smtps://example.org", "ops"));
    assert!(setting == "to" && why.contains("ops@example.com"), "{setting}: {why}");
}
