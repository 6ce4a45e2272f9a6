//! A test server on a store, with helpers for requests.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::port::Store;
use milepost_core::token::{NewToken, RANDOM_BYTES, Role, Secret};
use milepost_server::metrics::{Counts, Sample};
use milepost_server::{Options, ServerError};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use milepost_testkit::database::Database;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::sync::DropGuard;

use crate::api::described;

pub(crate) async fn on_sqlite() -> (TempDir, Arc<dyn Store>) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("jobs.db"), SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    (folder, Arc::new(store))
}

pub(crate) async fn on_postgres() -> (Database, Arc<dyn Store>) {
    let (database, store) = Database::with_store().await;
    (database, Arc::new(store))
}

/// A source of metrics.
struct Things;

impl Counts for Things {
    fn samples(&self) -> Vec<Sample> {
        vec![
            Sample::counter("things_done", "Things that were done", 7).of("by", "me"),
            Sample::histogram("thing_size", "How large things are", &[2.0], &[5, 1], 11.0),
        ]
    }
}

/// A server that runs until it is dropped.
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    url: String,
    client: Client,
    stop: DropGuard,
    serving: JoinHandle<Result<(), ServerError>>,
}

/// Returns a random token.
pub(crate) fn secret() -> Secret {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).unwrap();
    Secret::of_random(&random)
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    pub(crate) body: Value,
}

impl Answer {
    /// Returns the code of the problem.
    pub(crate) fn code(&self) -> &str {
        assert_eq!(self.content_type, "application/problem+json", "{self:?}");
        self.body["code"].as_str().unwrap()
    }

    /// Returns the position of the problem in the request.
    pub(crate) fn at(&self) -> &str {
        self.body["at"].as_str().unwrap_or_default()
    }
}

impl Place {
    pub(crate) async fn serve(store: Arc<dyn Store>) -> Self {
        Self::serve_with(store, Options::default()).await
    }

    pub(crate) async fn serve_with(store: Arc<dyn Store>, options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::serve_on(listener, store, options)
    }

    /// Starts a server whose address is known before.
    pub(crate) fn serve_on(listener: TcpListener, store: Arc<dyn Store>, options: Options) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        // The HTTP client needs a crypto provider, although the tests use plain HTTP. The first test installs it for all.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let stop = CancellationToken::new();
        // With a long wait, pages show current counts however busy the machine is.
        let options =
            Options { counts: vec![Box::new(Things)], page_wait: Duration::from_secs(60), ..options };
        let serving = tokio::spawn(milepost_server::serve(listener, store.clone(), options, stop.clone()));
        // Tests check redirects themselves.
        let client = Client::builder().redirect(Policy::none()).build().unwrap();
        Self { store, url, client, stop: stop.drop_guard(), serving }
    }

    /// Stops the server.
    pub(crate) fn stop(self) -> JoinHandle<Result<(), ServerError>> {
        drop(self.stop);
        self.serving
    }

    /// Starts another server on the same store.
    pub(crate) async fn beside(&self, options: Options) -> Self {
        Self::serve_with(Arc::clone(&self.store), options).await
    }

    /// Returns the address of the server.
    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Creates a token with this role; its name is that of the role.
    pub(crate) async fn token(&self, role: Role) -> Secret {
        self.token_of(NewToken::new(role.as_str(), role, &secret(), "tester")).await
    }

    /// Creates this token with a new secret.
    pub(crate) async fn token_of(&self, token: NewToken) -> Secret {
        let secret = secret();
        let (prefix, hash) = (secret.prefix().to_owned(), secret.hash());
        self.store.create_token(&NewToken { prefix, hash, ..token }).await.unwrap();
        secret
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let status = response.status();
        let content_type =
            response.headers().get("content-type").map_or("", |value| value.to_str().unwrap()).to_owned();
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer { status, content_type, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    /// Checks that the pages of a list together contain the same rows as the whole list, which has `rows` rows. `list` ends with
    /// `?` or `&`.
    pub(crate) async fn check_pages(&self, list: &str, limit: usize, rows: usize) {
        let whole = self.get(&format!("{list}limit=1000")).await.body;
        assert_eq!(
            (whole["items"].as_array().unwrap().len(), whole.get("next_cursor")),
            (rows, None),
            "{list}"
        );
        let (mut pages, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{list}limit={limit}{cursor}")).await.body;
            let items = page["items"].as_array().unwrap();
            assert!((1..=limit).contains(&items.len()), "{list}{cursor}: {page}");
            pages.extend(items.iter().cloned());
            assert!(pages.len() <= rows, "{list}{cursor}: more rows than expected");
            match page.get("next_cursor") {
                Some(next) => cursor = format!("&cursor={}", next.as_str().unwrap()),
                None => break,
            }
        }
        assert_eq!(json!(pages), whole["items"], "{list}: rows are missing or repeated");
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// Sends text that cannot be represented as a JSON value in the test.
    pub(crate) async fn post_text(&self, path: &str, text: String) -> Answer {
        self.send(self.request(Method::POST, path).header("Content-Type", "application/json").body(text))
            .await
    }

    /// Sends a request and checks the response against the OpenAPI document. `Value::Null`: without a body.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Value) -> Answer {
        described::ask(self, method, path, &body).await
    }

    /// Returns a page of the console as text.
    pub(crate) async fn page(&self, path: &str) -> (StatusCode, String) {
        let mut response = self.request(Method::GET, path).send().await.unwrap();
        if let Some(to) = response.headers().get("location") {
            let to = to.to_str().unwrap().to_owned();
            response = self.request(Method::GET, &to).send().await.unwrap();
        }
        (response.status(), response.text().await.unwrap())
    }

    /// Submits a form of the console. Returns the target of the redirect and the flash message there.
    pub(crate) fn form(
        &self,
        path: &str,
        fields: &[(&str, &str)],
    ) -> impl Future<Output = (String, String)> + use<> {
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = client
            .post(format!("{}{path}", self.url))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("origin", &self.url)
            .body(body);
        async move {
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), StatusCode::SEE_OTHER, "{}", response.url());
            let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
            let cookie = header("set-cookie");
            let said = cookie.split(['=', ';']).nth(1).unwrap();
            let said = percent_encoding::percent_decode_str(said).decode_utf8().unwrap().into_owned();
            (header("location"), said)
        }
    }

    /// Returns the reason in the last event of a stream.
    pub(crate) async fn why_it_ends(stream: Response) -> String {
        let text =
            timeout(milepost_testkit::wait::LIMIT, stream.text()).await.expect("the stream ends").unwrap();
        let (_, last) = text.trim_end().rsplit_once("event: dropped\ndata: ").expect(&text);
        let told: Value = serde_json::from_str(last).unwrap();
        assert!(told["detail"].is_string(), "{told}");
        told["reason"].as_str().unwrap().to_owned()
    }

    /// Creates a job and returns its id.
    pub(crate) async fn created(&self, body: &Value) -> String {
        let answer = self.post("/v1/jobs", body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        answer.body["id"].as_str().unwrap().to_owned()
    }
}
