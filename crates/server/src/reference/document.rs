//! The OpenAPI document, prepared for the API reference: operations by tag, and types.

use serde_json::Value;

use super::shape::{Named, Shape};

/// Text in parts; `true` marks code.
pub(crate) type Words = Vec<(bool, String)>;

/// The content of the API reference.
#[derive(Debug, Default)]
pub(crate) struct Reference {
    pub(crate) about: Words,
    pub(crate) groups: Vec<Group>,
    pub(crate) types: Vec<Type>,
}

/// The operations with one tag.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) operations: Vec<Operation>,
}

#[derive(Debug)]
pub(crate) struct Operation {
    /// The operation id, for links.
    pub(crate) id: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) about: Words,
    /// The role that it needs.
    pub(crate) role: Option<String>,
    pub(crate) params: Vec<Member>,
    /// The request body.
    pub(crate) body: Option<Shape>,
    pub(crate) answers: Vec<ResponseDoc>,
}

/// A parameter, or a member of an object.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Path, query or header; empty for members.
    pub(crate) place: String,
    pub(crate) shape: Shape,
    pub(crate) needed: bool,
    pub(crate) about: Words,
}

#[derive(Debug)]
pub(crate) struct ResponseDoc {
    pub(crate) status: String,
    pub(crate) about: Words,
    pub(crate) shape: Shape,
}

/// A named schema.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) name: String,
    pub(crate) about: Words,
    pub(crate) members: Vec<Member>,
    /// The shape, if it has no members.
    pub(crate) shape: Shape,
}

impl Reference {
    /// Reads a document.
    pub(crate) fn of(document: &Value) -> Self {
        let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let named: Named = members(&document["components"]["schemas"]).into_iter().collect();
        let mut groups: Vec<Group> = Vec::new();
        for (path, item) in members(&document["paths"]) {
            for (method, operation) in members(&item) {
                let name = text(&operation["tags"][0]);
                let operation = Operation::of(method.to_uppercase(), path.clone(), &operation, &named);
                match groups.iter_mut().find(|group| group.name == name) {
                    Some(group) => group.operations.push(operation),
                    None => groups.push(Group { name, operations: vec![operation] }),
                }
            }
        }
        let types = named.iter().map(|(name, schema)| Type::of(name, schema, &named)).collect();
        Self { about: words(&document["info"]["description"]), groups, types }
    }
}

impl Operation {
    fn of(method: String, path: String, operation: &Value, named: &Named) -> Self {
        let answers = operation["responses"].as_object().into_iter().flatten();
        Self {
            id: text(&operation["operationId"]),
            method,
            path,
            title: text(&operation["summary"]),
            about: words(&operation["description"]),
            role: operation["security"][0]["token"][0].as_str().map(str::to_owned),
            params: list(&operation["parameters"]).iter().map(|param| Member::param(param, named)).collect(),
            body: content(&operation["requestBody"], named),
            answers: answers.map(|(status, answer)| ResponseDoc::of(status, answer, named)).collect(),
        }
    }
}

impl ResponseDoc {
    fn of(status: &str, answer: &Value, named: &Named) -> Self {
        let status = if status == "default" { "4xx, 5xx" } else { status };
        let shape = content(answer, named).unwrap_or_default();
        Self { status: status.to_owned(), about: words(&answer["description"]), shape }
    }
}

impl Member {
    fn param(param: &Value, named: &Named) -> Self {
        Self {
            name: text(&param["name"]),
            place: text(&param["in"]),
            shape: Shape::of(&param["schema"], named),
            needed: param["required"] == true,
            about: words(&param["description"]),
        }
    }
}

impl Type {
    fn of(name: &str, schema: &Value, named: &Named) -> Self {
        let needed = list(&schema["required"]);
        let members = schema["properties"].as_object().into_iter().flatten().map(|(name, member)| Member {
            name: name.clone(),
            place: String::new(),
            shape: Shape::of(member, named),
            needed: needed.iter().any(|needed| needed == name.as_str()),
            about: words(&member["description"]),
        });
        let (members, about) = (members.collect::<Vec<_>>(), words(&schema["description"]));
        let shape = if members.is_empty() { Shape::written(schema, named) } else { Shape::default() };
        Self { name: name.to_owned(), about, members, shape }
    }
}

/// Returns the shape of a body, whatever its content type.
fn content(body: &Value, named: &Named) -> Option<Shape> {
    let (form, content) = body["content"].as_object()?.iter().next()?;
    Some(Shape::of(&content["schema"], named)).filter(|_| form != "text/event-stream")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Splits text into plain parts and code between backticks. Links of Rust documentation lose their brackets, since they have no
/// target here.
fn words(value: &Value) -> Words {
    let text = text(value).replace("[`", "`").replace("`]", "`");
    let parts = text.split('`').enumerate().map(|(at, part)| (at % 2 == 1, part.to_owned()));
    parts.filter(|(_, part)| !part.is_empty()).collect()
}
