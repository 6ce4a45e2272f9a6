//! Forms with a file (`multipart/form-data`).

use std::collections::HashMap;
use std::convert::Infallible;

use axum::body::Bytes;
use axum::http::HeaderValue;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::stream;
use multer::Multipart;
use sha2::{Digest, Sha256};

use super::add;
use crate::problem::{Code, Problem};

/// Returns the boundary of such a form; `None` for another content type.
pub(crate) fn boundary(content_type: &HeaderValue) -> Option<String> {
    multer::parse_boundary(content_type.to_str().ok()?).ok()
}

/// Returns the value of the first field with this name, which is no file.
pub(crate) async fn field(boundary: &str, body: Bytes, name: &str) -> Option<String> {
    let mut parts = parts(boundary, body);
    while let Some(part) = parts.next_field().await.ok()? {
        if part.name() == Some(name) && part.file_name().is_none() {
            return part.text().await.ok();
        }
    }
    None
}

/// The fields of a form, and the name and content of its file.
type Read = (HashMap<String, String>, Option<(String, Bytes)>);

/// Returns the fields and the file of a form. The field of the file has its name and a digest, so that another file is another form.
pub(super) async fn read(boundary: &str, body: Bytes) -> Result<Read, Problem> {
    let mut parts = parts(boundary, body);
    let (mut fields, mut file) = (HashMap::new(), None);
    while let Some(part) = parts.next_field().await.map_err(malformed)? {
        let name = part.name().unwrap_or_default().to_owned();
        match part.file_name().map(str::to_owned) {
            None => add(&mut fields, name, part.text().await.map_err(malformed)?)?,
            Some(file_name) => {
                let bytes = part.bytes().await.map_err(malformed)?;
                // Without a chosen file, a browser sends an empty one without a name.
                if file_name.is_empty() && bytes.is_empty() {
                    continue;
                }
                add(
                    &mut fields,
                    name,
                    format!("{file_name} {}", BASE64_STANDARD.encode(Sha256::digest(&bytes))),
                )?;
                file = Some((file_name, bytes));
            }
        }
    }
    Ok((fields, file))
}

fn parts(boundary: &str, body: Bytes) -> Multipart<'static> {
    Multipart::new(stream::once(async { Ok::<_, Infallible>(body) }), boundary)
}

fn malformed(error: multer::Error) -> Problem {
    Problem::new(Code::BodyUnreadable, format!("the form cannot be read: {error}"))
}
