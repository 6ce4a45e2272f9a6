//! Tests that stored and requested text never becomes markup.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};

use milepost_core::token::{NewToken, Role, Secret};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use milepost_testkit::database::Database;
use milepost_testkit::inbox::Desk;
use milepost_testkit::wait;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::api::console::PAGES;
use crate::api::corpus::{self, PAYLOADS, SHOWN, SHOWN_AS_JSON, text};
use crate::api::place::{Place, secret};

/// Elements that no page contains.
const FORBIDDEN: [&str; 10] =
    ["img", "iframe", "object", "embed", "base", "style", "template", "foreignobject", "animate", "set"];
/// Texts that a page shows in place of a count that is not available yet.
const NOT_YET: [&str; 3] = ["being counted", "being read", "Still counting"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_link_leads_to_a_page_and_nothing_stored_becomes_markup_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("jobs.db"), SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    every_link_leads_to_a_page_and_nothing_stored_becomes_markup(Desk::sqlite(store)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_link_leads_to_a_page_and_nothing_stored_becomes_markup_on_postgres() {
    let (_database, store) = Database::with_store().await;
    every_link_leads_to_a_page_and_nothing_stored_becomes_markup(Desk::postgres(store, false).await).await;
}

async fn every_link_leads_to_a_page_and_nothing_stored_becomes_markup(desk: Desk) {
    let place = Place::serve(desk.store.clone()).await;
    let mut tokens = Vec::new();
    for payload in PAYLOADS {
        corpus::fill(&desk, payload).await;
        let (name, maker) = (text(payload, "token"), text(payload, "who made a token"));
        tokens.push(place.token_of(NewToken::new(name, Role::Admin, &secret(), maker)).await);
    }
    let mut hidden = expected();
    let pages = crawl(&place, &tokens[0], &mut hidden).await;
    assert!(hidden.is_empty(), "none of {pages} pages shows {hidden:#?}");
    for (payload, token) in PAYLOADS.iter().zip(&tokens) {
        let (_, html) = page(&place, "/", token).await;
        assert_harmless("/", &html);
        let name = format!("<span>{}</span>", escaped(&text(payload, "token")));
        assert!(html.contains(&name), "{name}: {html}");
    }
}

/// Returns all texts that must be on some page, in escaped form.
fn expected() -> Vec<String> {
    let of = |payload: &'static str| {
        let plain = SHOWN.iter().map(move |field| escaped(&text(payload, field)));
        let as_json =
            SHOWN_AS_JSON.iter().map(move |field| escaped(&json!(text(payload, field)).to_string()));
        plain.chain(as_json)
    };
    PAYLOADS.into_iter().flat_map(of).collect()
}

/// Returns a text in the escaped form of the templates.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&#38;").replace('<', "&#60;").replace('>', "&#62;");
    text.replace('"', "&#34;").replace('\'', "&#39;")
}

/// The URLs at which the crawl begins: pages that show the filter from their URL.
fn begin() -> impl Iterator<Item = String> {
    let of = |payload: &'static str| {
        let it = utf8_percent_encode(payload, NON_ALPHANUMERIC).to_string();
        let kind = utf8_percent_encode(&text(payload, "kind"), NON_ALPHANUMERIC).to_string();
        [
            format!("/jobs?kind={it}&queue={it}&key={it}&error={it}"),
            format!("/jobs?payload={it}"),
            format!("/jobs?payload=a%3D{it}"),
            format!("/jobs?created={it}"),
            format!("/jobs?since={it}"),
            format!("/jobs/change?all=yes&operation=cancel&kind={kind}"),
            format!("/batches?dag={it}&key={it}"),
            format!("/events?subscription={it}&aggregate_type={it}&aggregate_id={it}&event_type={it}"),
            format!("/dead-letters?subscription={it}&consumer={it}"),
            format!("/audit?who={it}&subject={it}"),
        ]
    };
    PAGES.into_iter().map(str::to_owned).chain(PAYLOADS.into_iter().flat_map(of))
}

/// Follows all links. Removes the texts that a page shows from `hidden`; returns the number of pages.
async fn crawl(place: &Place, token: &Secret, hidden: &mut Vec<String>) -> usize {
    let mut seen: BTreeSet<String> = begin().collect();
    let mut left: VecDeque<String> = seen.iter().cloned().collect();
    while let Some(url) = left.pop_front() {
        let (status, html) = page(place, &url, token).await;
        assert_eq!(status, StatusCode::OK, "{url}: {html}");
        if ["/assets/", "/v1/", "/openapi.json"].iter().any(|path| url.starts_with(path)) {
            continue;
        }
        assert_harmless(&url, &html);
        for payload in PAYLOADS.into_iter().filter(|payload| escaped(payload) != *payload) {
            assert!(!html.contains(payload), "{payload} in {url}: {html}");
        }
        hidden.retain(|text| !html.contains(text.as_str()));
        for link in links(&html) {
            if seen.insert(link.clone()) {
                left.push_back(link);
            }
        }
    }
    seen.len()
}

/// Returns a page after all its counts are available.
async fn page(place: &Place, url: &str, token: &Secret) -> (StatusCode, String) {
    let last = RefCell::new((StatusCode::OK, String::new()));
    let counted = async || {
        let request = place.request(Method::GET, url).bearer_auth(token.reveal());
        let answer = request.send().await.unwrap();
        let (status, html) = (answer.status(), answer.text().await.unwrap());
        let counted = !NOT_YET.iter().any(|words| html.contains(words));
        *last.borrow_mut() = (status, html);
        counted
    };
    wait::until(&format!("all counts of {url} are available"), counted).await;
    last.into_inner()
}

/// Returns the paths that a page links to or loads.
fn links(html: &str) -> Vec<String> {
    let values = html.split("href=\"").skip(1).chain(html.split("src=\"").skip(1));
    let links = values.map(|rest| {
        let link = rest.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
        link.split('#').next().unwrap().to_owned()
    });
    links.filter(|link| link.starts_with('/')).collect()
}

/// Asserts that a page contains only markup that templates write and that its content security policy allows.
pub(crate) fn assert_harmless(url: &str, html: &str) {
    let harm = harm(html);
    assert!(harm.is_none(), "{harm:?} in {url}: {html}");
}

/// Returns the first problem in the markup of a page.
fn harm(html: &str) -> Option<String> {
    let Some(tags) = tags(html) else { return Some("malformed markup".to_owned()) };
    tags.iter().find_map(|tag| Some(format!("{} of {tag:?}", tag.harm()?)))
}

/// A tag, parsed as by a browser.
#[derive(Debug)]
struct Tag<'a> {
    closes: bool,
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

/// Parses all tags; `None` if one of them is malformed.
fn tags(html: &str) -> Option<Vec<Tag<'_>>> {
    let (mut tags, mut rest) = (Vec::new(), html);
    while let Some((_, behind)) = rest.split_once('<') {
        let (tag, behind) = behind.split_at(end_of_tag(behind)?);
        tags.push(Tag::read(tag)?);
        rest = behind;
    }
    Some(tags)
}

/// Returns the end of a tag: the first `>` outside quotes.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match quote {
            None if c == '>' => return Some(at),
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

impl<'a> Tag<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (closes, text) = text.strip_prefix('/').map_or((false, text), |text| (true, text));
        let (name, mut rest) = word(text);
        let mut attributes = Vec::new();
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
            if rest.is_empty() {
                return Some(Self { closes, name, attributes });
            }
            let (attribute, behind) = word(rest);
            let (value, behind) = value(behind)?;
            attributes.push((attribute, value));
            rest = behind;
        }
    }

    fn harm(&self) -> Option<&'static str> {
        let name = self.name.to_ascii_lowercase();
        let loads = |(name, value): &(&str, &str)| *name == "src" && value.starts_with("/assets/");
        if name != "!doctype" && !is_word(&name) {
            Some("the name")
        } else if FORBIDDEN.contains(&name.as_str()) {
            Some("the element")
        } else if name == "script" && !self.closes && !self.attributes.iter().any(loads) {
            Some("the script")
        } else {
            self.attributes.iter().find_map(|(name, value)| harm_of(&name.to_ascii_lowercase(), value))
        }
    }
}

/// Returns the problem of an attribute.
fn harm_of(name: &str, value: &str) -> Option<&'static str> {
    let is_link = matches!(name, "href" | "src" | "action" | "formaction");
    let is_own = value.starts_with(['/', '#']) && !value.starts_with("//");
    if !is_word(name) || name.starts_with("on") || matches!(name, "style" | "srcdoc") {
        Some("an attribute")
    } else if is_link && !is_own {
        Some("a link")
    } else {
        None
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Splits off the name of an element or an attribute.
fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c.is_whitespace() || matches!(c, '=' | '/')).unwrap_or(text.len());
    text.split_at(end)
}

/// Splits off the value of an attribute; `None` if it is not quoted, as all values in templates are.
fn value(text: &str) -> Option<(&str, &str)> {
    let Some(quoted) = text.strip_prefix('=') else { return Some(("", text)) };
    let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    quoted[1..].split_once(quote)
}

#[test]
fn what_breaks_out_of_its_place_is_seen() {
    for payload in PAYLOADS.into_iter().filter(|payload| escaped(payload) != *payload) {
        let places = [
            format!("<title>{payload}</title>"),
            format!("<b title=\"{payload}\">x</b>"),
            format!("<b title='{payload}'>x</b>"),
        ];
        assert!(places.iter().any(|html| harm(html).is_some()), "{payload}");
        let escaped = escaped(payload);
        assert_eq!(harm(&format!("<b title=\"{escaped}\" data-x='{escaped}'>{escaped}</b>")), None);
    }
    for link in ["javascript:alert(1)", "//elsewhere.example", "https://elsewhere.example"] {
        assert!(harm(&format!("<a href=\"{link}\">x</a>")).is_some(), "{link}");
    }
    assert_eq!(harm("<!doctype html><p class=\"a>b\"><a href=\"/jobs?a=%3Cb%3E\">x</a><br/></p>"), None);
}
