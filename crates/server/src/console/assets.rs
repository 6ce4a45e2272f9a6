//! Style sheets and scripts, compiled in. Their URLs contain a hash of the contents, so that browsers can cache them permanently.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// A static file.
struct Asset {
    name: &'static str,
    content_type: &'static str,
    content: &'static str,
}

macro_rules! assets {
    ($($name:literal $content_type:literal,)+) => {
        &[$(Asset { name: $name, content_type: $content_type, content: include_str!(concat!("../../assets/", $name)) }),+]
    };
}

const ASSETS: &[Asset] = assets! {
    "console.css" "text/css",
    "uplot.min.css" "text/css",
    "theme.js" "text/javascript",
    "console.js" "text/javascript",
    "idiomorph.min.js" "text/javascript",
    "uplot.min.js" "text/javascript",
    "icon.svg" "image/svg+xml",
};

/// A hash of all files, which is part of their URLs.
static EDITION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    ASSETS.iter().for_each(|asset| hash.update(asset.content));
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
});

/// Returns the URL of a file.
pub(crate) fn url(name: &str) -> String {
    format!("/assets/{}/{name}", *EDITION)
}

/// Returns a file. If the hash in the URL is a different one, the page was served by another version of this server; the response
/// is then not cached.
pub(super) async fn get(Path((edition, name)): Path<(String, String)>) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let kept = if edition == *EDITION { "public, max-age=31536000, immutable" } else { "no-store" };
    let headers = [(header::CONTENT_TYPE, asset.content_type), (header::CACHE_CONTROL, kept)];
    (headers, asset.content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_as_the_list_of_it_says() {
        let list = include_str!("../../assets/VENDORED.md");
        for name in ["idiomorph.min.js", "uplot.min.js", "uplot.min.css"] {
            let asset = ASSETS.iter().find(|asset| asset.name == name).unwrap();
            let sum: String =
                Sha256::digest(asset.content).iter().map(|byte| format!("{byte:02x}")).collect();
            let line = list.lines().find(|line| line.starts_with(&format!("| `{name}`"))).unwrap();
            assert!(line.contains(&sum), "{name} has the sum {sum}");
        }
    }
}
