//! The requested pages, and the measurement of their response times.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use http_body_util::Full;
use hyper::{Request, StatusCode, header};
use serde::{Serialize, Serializer};
use tokio::time::{Duration, Instant, sleep};

use super::beside::Places;
use crate::report::{median, rounded};
use crate::served::{Connection, Response, connect};

/// Every page with a list, with the usual filters; placeholders in braces are replaced.
const PAGES: [&str; 24] = [
    "/",
    "/jobs",
    "/jobs?state=failed",
    "/jobs?state=running",
    "/jobs?state=pending",
    "/jobs?key={key}",
    "/jobs?kind=invoice&queue=night",
    "/jobs?kind=nothing",
    "/jobs?state=failed&error=http_503",
    "/jobs?state=failed&since=2020-01-01",
    "/jobs?payload=customer%3Dc42",
    "/jobs?payload=customer%3Dnobody&created=any",
    "/jobs/{failed}",
    "/queues",
    "/workers",
    "/schedules",
    "/bulk",
    "/bulk/{bulk}",
    "/batches",
    "/batches/{batch}",
    "/events",
    "/dead-letters",
    "/audit",
    "/settings",
];

/// Texts on a page that is not complete yet.
const UNFINISHED: [&str; 3] = ["being read", "being counted", "Still counting"];
/// The maximum time until a page is complete.
const WARM_MAX: Duration = Duration::from_secs(120);

/// The response times of a page.
#[derive(Debug, Serialize)]
pub(super) struct Timed {
    pub(super) page: &'static str,
    #[serde(serialize_with = "as_rounded")]
    pub(super) median_ms: f64,
    #[serde(serialize_with = "as_rounded")]
    pub(super) worst_ms: f64,
    /// The size as transferred, without headers.
    pub(super) bytes: usize,
}

/// Serializes a measured number, rounded as in the other reports.
pub(super) fn as_rounded<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    rounded(*value).serialize(serializer)
}

/// A client with one connection for all pages.
pub(super) struct Visitor {
    at: SocketAddr,
    connection: Connection,
}

impl Visitor {
    pub(super) async fn new(at: SocketAddr) -> Result<Self> {
        Ok(Self { at, connection: connect(at).await? })
    }

    /// Requests each page until it is complete, and then `rounds` times.
    pub(super) async fn measure(&mut self, jobs: u64, places: &Places, rounds: u32) -> Result<Vec<Timed>> {
        let mut pages = Vec::new();
        for page in PAGES {
            let path = filled_in(page, jobs, places);
            self.warm(&path).await?;
            let mut bytes = 0;
            let mut took_ms = Vec::new();
            for _ in 0..rounds {
                let answer = self.get(&path, "gzip").await?;
                bytes = answer.body.len();
                took_ms.push(answer.took.as_secs_f64() * 1000.0);
            }
            let worst_ms = took_ms.iter().copied().fold(0.0, f64::max);
            pages.push(Timed { page, median_ms: median(took_ms), worst_ms, bytes });
        }
        Ok(pages)
    }

    /// Requests a page until none of its contents is still being read or counted.
    async fn warm(&mut self, path: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            let answer = self.get(path, "identity").await?;
            let page = String::from_utf8_lossy(&answer.body);
            if !UNFINISHED.iter().any(|words| page.contains(words)) {
                return Ok(());
            }
            ensure!(begun.elapsed() < WARM_MAX, "{path} was not complete after {WARM_MAX:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Returns the size of the overview with its styles and scripts, each counted once: the transfer of a first visit.
    pub(super) async fn first_load(&mut self) -> Result<usize> {
        let page = self.get("/", "identity").await?;
        let page = String::from_utf8(page.body.to_vec()).context("the overview is not text")?;
        let parts = styles_and_scripts(&page);
        ensure!(!parts.is_empty(), "the overview has neither styles nor scripts");
        let mut bytes = self.get("/", "gzip").await?.body.len();
        for part in parts {
            bytes += self.get(part, "gzip").await?.body.len();
        }
        Ok(bytes)
    }

    async fn get(&mut self, path: &str, encoding: &str) -> Result<Response> {
        let request = Request::builder()
            .uri(path)
            .header(header::HOST, self.at.to_string())
            .header(header::ACCEPT, "text/html")
            .header(header::ACCEPT_ENCODING, encoding)
            .body(Full::default())?;
        let answer = self.connection.ask(request).await?;
        // The body of an error may be compressed and is an HTML page, so it is not printed.
        ensure!(
            answer.status == StatusCode::OK,
            "the server responded with status {} to {path}",
            answer.status
        );
        Ok(answer)
    }
}

/// Returns the path of a page, with placeholders replaced.
fn filled_in(page: &str, jobs: u64, places: &Places) -> String {
    page.replace("{key}", &format!("order-{}", jobs / 2 / 10 * 10))
        .replace("{failed}", &places.failed.to_string())
        .replace("{bulk}", &places.bulk.to_string())
        .replace("{batch}", &places.batch.to_string())
}

/// Returns the styles and scripts that a page refers to.
fn styles_and_scripts(page: &str) -> BTreeSet<&str> {
    let named = page.split('"').filter(|text| text.starts_with("/assets/"));
    named.filter(|path| path.ends_with(".css") || path.ends_with(".js")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_and_scripts_are_found_once_each() {
        let page = r#"<link rel="icon" href="/assets/1/icon.svg"><script src="/assets/1/a.js"></script>
            <link rel="stylesheet" href="/assets/1/a.css"><script src="/assets/1/a.js" defer></script><a href="/jobs">"#;
        assert_eq!(Vec::from_iter(styles_and_scripts(page)), ["/assets/1/a.css", "/assets/1/a.js"]);
    }
}
