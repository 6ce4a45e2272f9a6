//! The API reference at `/reference`, generated from the OpenAPI document.

pub(crate) mod document;
mod shape;

use std::sync::Arc;

use askama::Template;

use self::document::Reference;
use crate::app::App;
use crate::console::{Drawn, Page, draw};

#[derive(Template)]
#[template(path = "reference.html")]
struct Shown {
    page: Page,
    all: Arc<Reference>,
}

pub(crate) async fn show(app: App, page: Page) -> Drawn {
    Ok(draw(&Shown { page, all: Arc::clone(&app.reference) }))
}
