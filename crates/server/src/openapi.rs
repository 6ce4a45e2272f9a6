//! The OpenAPI document, generated from the routes.

use axum::body::Bytes;
use axum::http::{HeaderName, StatusCode, header};
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{
    Content, InfoBuilder, OpenApi as Document, PathItem, Ref, RefOr, ResponseBuilder, ServerBuilder,
};

use crate::problem::Problem;
use crate::stream::ChangeType;

#[derive(OpenApi)]
#[openapi(components(schemas(Problem, ChangeType)))]
struct Shared;

/// Returns the document without routes.
pub(crate) fn document() -> Document {
    let mut document = Shared::openapi();
    document.info = InfoBuilder::new()
        .title("Milepost")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(include_str!("openapi.md")))
        .build();
    document.servers = Some(vec![ServerBuilder::new().url("/").build()]);
    if let Some(components) = &mut document.components {
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme("token", bearer);
    }
    document
}

/// Returns the complete document as the response of `/openapi.json`.
pub(crate) fn text(document: Document) -> ([(HeaderName, &'static str); 1], Bytes) {
    // The document consists of maps and strings only, so serialization cannot fail.
    let text = serde_json::to_vec(&with_problems(document)).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], Bytes::from(text))
}

/// Adds the error response to every operation, and the description of each response that has none: OpenAPI requires one.
fn with_problems(mut document: Document) -> Document {
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            for (status, response) in &mut operation.responses.responses {
                if let RefOr::T(response) = response
                    && response.description.is_empty()
                {
                    let reason =
                        status.parse::<StatusCode>().ok().and_then(|status| status.canonical_reason());
                    response.description = reason.unwrap_or("Success").to_owned();
                }
            }
            operation.responses.responses.insert("default".to_owned(), RefOr::T(problem()));
        }
    }
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch]
        .into_iter()
        .filter_map(Option::as_mut)
}

fn problem() -> utoipa::openapi::Response {
    ResponseBuilder::new()
        .description("The request was refused or failed; `code` identifies the reason, `detail` describes it")
        .content("application/problem+json", Content::new(Some(RefOr::Ref(Ref::from_schema_name("Problem")))))
        .build()
}
