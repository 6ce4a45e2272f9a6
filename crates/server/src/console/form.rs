//! Forms that change something: each asks for confirmation and a reason, and returns to the page it was opened on.

pub(crate) mod multipart;

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use milepost_core::actions::{self, Input, REASON_CHARS_MAX};
use milepost_core::audit::Actor;
use milepost_core::duration::parse_positive;
use milepost_core::named::UnknownName;
use milepost_core::port::Store;
use milepost_core::token::Role;
use uuid::Uuid;

use super::flash::Flash;
use super::page::Page;
use crate::access::Identity;
use crate::actor::RequestActor;
use crate::app::App;
use crate::body;
use crate::idempotency::id_of;
use crate::problem::{Code, Problem};
use crate::redirect::own_path;

/// The hidden field with the id of a form that creates something.
const FORM_ID: &str = "form";

/// A button that opens a form with a confirmation.
#[derive(Debug, Template)]
#[template(path = "action.html")]
pub(crate) struct Action {
    /// An id that is unique on the page.
    id: String,
    url: String,
    /// The label of the button.
    label: Cow<'static, str>,
    /// The question, and the effect of the action.
    question: String,
    effect: String,
    /// Whether the action destroys or stops something.
    danger: bool,
    fields: Vec<Field>,
    back: String,
    csrf: String,
}

/// A form field.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Cow<'static, str>,
    /// The label; empty for hidden fields.
    pub(crate) label: Cow<'static, str>,
    pub(crate) value: String,
    pub(crate) hint: Cow<'static, str>,
    pub(crate) required: bool,
    pub(crate) control: Control,
}

/// How a field is edited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Control {
    /// A line of text.
    #[default]
    Line,
    /// A line with a number. Numbers are text, so that they keep all digits.
    Number,
    Date,
    /// A text area for JSON.
    Json,
    /// A list with these values and their labels.
    Choice(Vec<(String, String)>),
    /// A file of the user, with these endings of its name.
    File(&'static str),
}

impl Field {
    /// Creates a hidden field.
    pub(crate) fn hidden(name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        Self::shown(name, "", value, "")
    }

    /// Creates a visible field: a line of text that may be empty.
    pub(crate) fn shown(
        name: impl Into<Cow<'static, str>>,
        label: impl Into<Cow<'static, str>>,
        value: impl Into<String>,
        hint: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (name, label, hint) = (name.into(), label.into(), hint.into());
        Self { name, label, value: value.into(), hint, required: false, control: Control::Line }
    }

    /// Makes the field required.
    #[must_use]
    pub(crate) fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets how the field is edited.
    #[must_use]
    pub(crate) fn edited_as(mut self, control: Control) -> Self {
        self.control = control;
        self
    }

    /// Returns whether a list must offer an empty value.
    fn may_be_unset(&self) -> bool {
        !self.required || self.value.is_empty()
    }
}

impl askama::filters::HtmlSafe for Action {}

impl Action {
    /// Creates the form of an operator's action, which returns to its page. `id` must be unique on the page.
    pub(crate) fn new(
        page: &Page,
        id: impl Into<String>,
        url: impl Into<String>,
        action: impl actions::Action,
    ) -> Self {
        let description = action.description();
        let mut fields = vec![Field::hidden("operation", action.name())];
        if description.inputs.contains(&Input::RequiredDelay) {
            let wait = Field::shown("wait", "Duration", "10m", "90s, 10m, 2h or 1d");
            fields.push(wait.required());
        }
        Self {
            id: id.into(),
            url: url.into(),
            label: description.title.into(),
            question: String::new(),
            effect: description.effect(),
            danger: description.is_destructive,
            fields,
            back: page.url.clone(),
            csrf: page.viewer.csrf.clone(),
        }
    }

    /// Sets the question.
    #[must_use]
    pub(crate) fn asks(mut self, question: impl Into<String>) -> Self {
        self.question = question.into();
        self
    }

    /// Sets the label of the button.
    #[must_use]
    pub(crate) fn titled(mut self, label: impl Into<Cow<'static, str>>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a sentence to the effect.
    #[must_use]
    pub(crate) fn explains(mut self, words: &str) -> Self {
        self.effect = format!("{} {words}", self.effect);
        self
    }

    /// Makes the id unique among similar actions on the page.
    #[must_use]
    pub(crate) fn among(mut self, place: usize) -> Self {
        self.id = format!("{}-{place}", self.id);
        self
    }

    #[must_use]
    pub(crate) fn with(mut self, field: Field) -> Self {
        self.fields.push(field);
        self
    }

    /// Returns whether this field gets the focus: the first visible one.
    fn begins_in(&self, field: &Field) -> bool {
        self.fields.iter().find(|field| !field.label.is_empty()).is_some_and(|first| first.name == field.name)
    }

    /// Returns the height of a text area in rows: less if it may be empty, and is.
    const fn rows(field: &Field) -> usize {
        if field.required || !field.value.is_empty() { 8 } else { 3 }
    }

    /// Returns whether it sends a file.
    fn sends_a_file(&self) -> bool {
        self.fields.iter().any(|field| matches!(field.control, Control::File(_)))
    }

    /// Returns whether the reason is the only visible field.
    fn asks_only_why(&self) -> bool {
        self.fields.iter().all(|field| field.label.is_empty())
    }
}

/// Returns the store, acting for the sender of the form with the reason that the form gives.
pub(crate) fn acting(app: &App, sent: &Sent) -> Result<Arc<dyn Store>, Flash> {
    Ok(app.acting(sent.actor_with_reason()?))
}

/// Clears the cached counts after a form that may have changed something, even if the client has disconnected, so that the next
/// page shows the change.
pub(crate) async fn look_anew(State(app): State<App>, request: Request, next: Next) -> Response {
    let _anew = may_change(&request).then(|| LookAnew(app.of_caller(request.extensions())));
    next.run(request).await
}

/// Returns whether the request is a form of a caller who may change something.
fn may_change(request: &Request) -> bool {
    let is_form = request.method() == Method::POST && !request.uri().path().starts_with("/v1/");
    let sender = request.extensions().get::<Identity>();
    is_form && sender.is_some_and(|sender| sender.may(Role::Operator))
}

struct LookAnew(App);

impl Drop for LookAnew {
    fn drop(&mut self) {
        self.0.known.forget();
    }
}

/// Returns the field by which a form that is submitted twice is detected.
pub(super) fn once() -> Field {
    Field::hidden(FORM_ID, Uuid::now_v7().simple().to_string())
}

/// A submitted form.
#[derive(Debug)]
pub(crate) struct Sent {
    actor: RequestActor,
    fields: HashMap<String, String>,
    /// The name and the content of the file that was sent, if the form has one.
    file: Option<(String, Bytes)>,
}

impl Sent {
    /// Returns a field as it was sent: names may begin and end with spaces. `None` if it is empty.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str).filter(|value| !value.trim().is_empty())
    }

    /// Returns a field that is not a name, without surrounding whitespace; `None` if it is empty.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.field(name).map(str::trim)
    }

    /// Returns the fields whose names begin with this prefix, by the rest of their names, without empty ones.
    pub(crate) fn after_prefix(&self, prefix: &str) -> BTreeMap<&str, &str> {
        self.fields.keys().filter_map(|name| Some((name.strip_prefix(prefix)?, self.field(name)?))).collect()
    }

    /// Returns the name and the content of the file that was sent.
    pub(crate) fn file(&self) -> Result<(&str, Bytes), Flash> {
        let file = self.file.as_ref().ok_or_else(|| Flash::refused("nothing was done: choose a file"))?;
        Ok((&file.0, file.1.clone()))
    }

    /// Returns a required field.
    pub(crate) fn needed(&self, name: &str) -> Result<&str, Flash> {
        self.field(name).ok_or_else(|| Flash::refused(format!("nothing was done: {name} is missing")))
    }

    /// Returns the key of what the form creates: the one in the field `key`, otherwise one that the form has only if it is submitted again with the
    /// same content.
    pub(crate) fn key(&self) -> Option<String> {
        if let Some(key) = self.field("key") {
            return Some(key.to_owned());
        }
        Some(format!("form:{}", self.submission()?))
    }

    /// Returns an id that the form has only if it is submitted again with the same content.
    pub(crate) fn submission(&self) -> Option<Uuid> {
        self.field(FORM_ID)?;
        let content: BTreeMap<&String, &String> = self.fields.iter().collect();
        Some(id_of(&format!("{content:?}")))
    }

    /// Parses an optional field.
    pub(crate) fn read<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Flash> {
        let refuse = |value: &str, error: T::Err| {
            Flash::refused(format!("nothing was done: {name} is {value:?}, which is invalid: {error}"))
        };
        self.value(name).map(|value| value.parse().map_err(|error| refuse(value, error))).transpose()
    }

    /// Returns the required reason.
    pub(crate) fn reason(&self) -> Result<String, Flash> {
        self.needed("reason").map(|reason| reason.trim().to_owned())
    }

    /// Returns the sender, with the required reason.
    pub(crate) fn actor_with_reason(&self) -> Result<Actor, Flash> {
        Ok(self.actor.because(Some(&self.reason()?))?)
    }

    /// Returns the action that the form is for.
    pub(crate) fn operation<A: FromStr<Err = UnknownName>>(&self) -> Result<A, Flash> {
        let parsed = self.needed("operation")?.parse();
        parsed.map_err(|unknown| Flash::refused(format!("nothing was done: {unknown}")))
    }

    /// Returns the duration in the optional field `wait`: `90s`, `10m`, `2h`, `1d`, or a number of seconds.
    pub(crate) fn wait(&self) -> Result<Option<Duration>, Flash> {
        let Some(text) = self.value("wait") else { return Ok(None) };
        let parsed = text
            .parse()
            .map_or_else(|_| parse_positive(text), |seconds: u64| parse_positive(&format!("{seconds}s")));
        parsed.map(Some).map_err(|invalid| Flash::refused(format!("nothing was done: {text:?}: {invalid}")))
    }

    /// Returns the path of the page it came from: always a path of this server, even if the form contains another URL.
    fn back(&self) -> &str {
        own_path(self.field("back").unwrap_or_default())
    }

    /// Redirects to the page it came from, which shows the result.
    pub(crate) fn answer(&self, done: Result<String, Flash>) -> Response {
        match done {
            Ok(words) => Flash::done(words).on(self.back()),
            Err(flash) => flash.on(self.back()),
        }
    }
}

impl<S: Send + Sync> FromRequest<S> for Sent {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let actor = RequestActor::of(request.extensions());
        let content_type = request.headers().get(header::CONTENT_TYPE).cloned();
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|rejection| body::unreadable(&rejection).into_response())?;
        let (fields, file) = match content_type.as_ref().and_then(multipart::boundary) {
            Some(boundary) => multipart::read(&boundary, bytes).await,
            None => fields(&bytes).map(|fields| (fields, None)),
        }
        .map_err(Problem::into_response)?;
        Ok(Self { actor, fields, file })
    }
}

/// Returns the fields of a form. One that occurs twice is refused: it is unclear which of its values is meant.
fn fields(body: &[u8]) -> Result<HashMap<String, String>, Problem> {
    let mut fields = HashMap::new();
    for (name, value) in form_urlencoded::parse(body).into_owned() {
        add(&mut fields, name, value)?;
    }
    Ok(fields)
}

fn add(fields: &mut HashMap<String, String>, name: String, value: String) -> Result<(), Problem> {
    match fields.entry(name) {
        Entry::Vacant(free) => drop(free.insert(value)),
        Entry::Occupied(taken) => {
            let words = format!("the field {:?} occurs more than once", taken.key());
            return Err(Problem::new(Code::InvalidParameter, words));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
