//! DAGs and their versions.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::{Defined, VersionView};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::version::Version;
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Identity;
use crate::actor::{RequestActor, Why};
use crate::app::{App, Server};
use crate::body::{self, Body};
use crate::large_reads::LargePermit;
use crate::params::{Path, Query};
use crate::problem::{Code, Problem};

/// The maximum number of objects and lists in a definition. Each takes more than a kilobyte while the definition is checked.
const CONTAINERS_MAX: usize = 300_000;
/// The minimum number of digits to identify a version by a prefix.
const VERSION_DIGITS_MIN: usize = 6;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list_dags, define_dag))
        .routes(routes!(get_dag))
        .routes(routes!(list_dag_versions))
}

/// List DAGs
///
/// The latest version of each DAG, ordered by name.
#[utoipa::path(
    get, path = "/v1/dags", tag = "batches", responses((status = 200, body = Vec<VersionView>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_dags(app: App) -> Result<Json<Vec<VersionView>>, Problem> {
    Ok(Json(app.store.dags().await?))
}

/// Define a DAG
///
/// The same content is the same version. Running batches keep the version that they were started with; later batches use this one.
/// `faults` lists all errors of an invalid definition. If its expressions read values that the configuration hides (`[hide]`), a new version needs a
/// role in `reveal` of that section.
#[utoipa::path(
    post, path = "/v1/dags", tag = "batches", params(Why), request_body = Definition,
    responses((status = 201, body = Defined), (status = 200, description = "The version already existed, and is the latest now", body = Defined)),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn define_dag(
    app: App,
    actor: RequestActor,
    Extension(caller): Extension<Identity>,
    Query(why): Query<Why>,
    Body(text): Body<Box<RawValue>>,
) -> Result<(StatusCode, Json<Defined>), Problem> {
    let store = app.acting(actor.because_in_query(why.reason.as_deref())?);
    let containers = containers(text.get());
    if containers > CONTAINERS_MAX {
        let words = format!(
            "a definition must have at most {CONTAINERS_MAX} objects and lists, not {containers}; split it, or define it with `milepost batch define`"
        );
        return Err(Problem::new(Code::TooMany, words));
    }
    let permit = app.large.definition_permit().await;
    let definition: Definition = body::read(text.get().as_bytes())?;
    drop(text);
    let dag = checked(&permit, definition).await?;
    app.check_definer(&caller, &dag).await?;
    let defined = store.define_dag(&dag).await?;
    let status = if defined.known { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(defined)))
}

/// Returns the number of objects and lists in a JSON text.
fn containers(text: &str) -> usize {
    let (mut count, mut in_string, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Returns a version of a DAG, or the latest, with its definition.
pub(crate) async fn definition(
    _: &LargePermit<'_>,
    name: &str,
    version: Option<Version>,
    store: &dyn Store,
) -> Result<(VersionView, Definition), Problem> {
    Ok(store.dag(name, version).await?)
}

/// Checks a definition on a blocking thread, since a large one takes long.
pub(crate) async fn checked(_: &LargePermit<'_>, definition: Definition) -> Result<Dag, Problem> {
    let checked = tokio::task::spawn_blocking(move || Dag::check(definition)).await;
    let checked = checked.map_err(|error| {
        tracing::error!(%error, "a definition could not be checked");
        Problem::new(Code::CheckFailed, "the definition could not be checked")
    })?;
    Ok(checked.map_err(|invalid| StoreError::from(InvalidBatch::Dag(invalid)))?)
}

/// List the versions of a DAG
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/dags/{name}/versions", tag = "batches", params(("name" = String, Path, description = "The DAG")),
    responses((status = 200, body = Vec<VersionView>)), security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_dag_versions(app: App, Path(name): Path<String>) -> Result<Json<Vec<VersionView>>, Problem> {
    versions(&name, app.store.as_ref()).await.map(Json)
}

async fn versions(name: &str, store: &dyn Store) -> Result<Vec<VersionView>, Problem> {
    let versions = store.dag_versions(name).await?;
    if versions.is_empty() {
        return Err(StoreError::from(InvalidBatch::NoSuchDag { name: name.to_owned() }).into());
    }
    Ok(versions)
}

/// Returns the version of a DAG with this number, or whose hash begins with these digits.
pub(crate) async fn version(name: &str, text: &str, store: &dyn Store) -> Result<Version, Problem> {
    let versions = versions(name, store).await?;
    let number = text.parse::<u32>().ok();
    if let Some(found) = versions.iter().find(|version| Some(version.number) == number) {
        return Ok(found.version);
    }
    let begins = |version: &&VersionView| {
        text.len() >= VERSION_DIGITS_MIN && version.version.to_string().starts_with(text)
    };
    let found: Vec<&VersionView> = versions.iter().filter(begins).collect();
    match found.as_slice() {
        [only] => Ok(only.version),
        _ => {
            let (name, version) = (name.to_owned(), text.to_owned());
            Err(StoreError::from(InvalidBatch::NoSuchVersion { name, version }).into())
        }
    }
}

/// A version of a DAG with its definition.
#[derive(Debug, Serialize, ToSchema)]
struct DagDetail {
    /// The version.
    #[serde(flatten)]
    view: VersionView,
    /// The definition.
    definition: Definition,
}

/// The requested version.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DagParams {
    /// Its number, or the first digits of its hash. The default is the latest.
    version: Option<String>,
}

/// Get a DAG
///
/// The latest or the requested version, with its definition.
#[utoipa::path(
    get, path = "/v1/dags/{name}", tag = "batches", params(("name" = String, Path, description = "The DAG"), DagParams),
    responses((status = 200, body = DagDetail)), security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn get_dag(
    app: App,
    Path(name): Path<String>,
    Query(params): Query<DagParams>,
) -> Result<Response, Problem> {
    let permit = app.large.exclusive_permit().await;
    let store = app.store.as_ref();
    let version = match &params.version {
        Some(text) => Some(version(&name, text, store).await.map_err(|it| it.at("query version"))?),
        None => None,
    };
    let (view, definition) = definition(&permit, &name, version, store).await?;
    Ok(Json(DagDetail { view, definition }).into_response())
}

#[cfg(test)]
mod tests {
    use super::containers;

    #[test]
    fn objects_and_lists_are_counted_outside_of_texts() {
        assert_eq!(containers(r#"{"a": [{}, "${ x }", "\"[", "\\", {"b": []}]}"#), 5);
    }
}
