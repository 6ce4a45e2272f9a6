//! What a run is about: the parameters that its SQL asks for by name.

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Map, Value};

#[derive(Debug, Args)]
pub(super) struct ParametersArgs {
    /// All parameters, as a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "params")]
    payload: Option<String>,
    /// A parameter, which SQL has as :NAME; may be given several times. A value that is no JSON is a text
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    params: Vec<(String, Value)>,
}

fn parameter(text: &str) -> Result<(String, Value), String> {
    let split = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = split.ok_or("a parameter is given as NAME=VALUE, such as place=4711")?;
    Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))))
}

impl ParametersArgs {
    /// The parameters as one object.
    pub(super) fn read(self) -> Result<Map<String, Value>> {
        let Some(payload) = self.payload else { return unique(self.params) };
        match serde_json::from_str(&payload).context("--payload is no JSON")? {
            Value::Object(object) => Ok(object),
            _ => bail!(
                "--payload is a JSON object whose members are the parameters, such as {{\"place\": 4711}}"
            ),
        }
    }
}

fn unique(params: Vec<(String, Value)>) -> Result<Map<String, Value>> {
    let mut object = Map::new();
    for (name, value) in params {
        if object.insert(name.clone(), value).is_some() {
            bail!("the parameter {name} is given twice");
        }
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_parameter_is_json_where_it_can_be_and_else_a_text() {
        assert_eq!(parameter("place=4711"), Ok(("place".to_owned(), json!(4711))));
        assert_eq!(parameter("name=Bad Homburg"), Ok(("name".to_owned(), json!("Bad Homburg"))));
        assert_eq!(parameter("code=007"), Ok(("code".to_owned(), json!("007"))));
        assert_eq!(parameter("where=a=b"), Ok(("where".to_owned(), json!("a=b"))));
        assert!(parameter("place").is_err_and(|why| why.contains("NAME=VALUE")));
        assert!(parameter("=1").is_err());
    }

    #[test]
    fn all_parameters_are_one_object() {
        let read = |payload: Option<&str>, params: &[&str]| {
            let params = params.iter().map(|text| parameter(text).unwrap()).collect();
            ParametersArgs { payload: payload.map(str::to_owned), params }.read().map(Value::from)
        };
        assert_eq!(read(None, &[]).unwrap(), json!({}));
        assert_eq!(read(None, &["a=1", "b=x"]).unwrap(), json!({ "a": 1, "b": "x" }));
        assert_eq!(read(Some("{\"a\": null}"), &[]).unwrap(), json!({ "a": null }));
        assert!(read(None, &["a=1", "a=2"]).is_err());
        assert!(read(Some("[1]"), &[]).is_err() && read(Some("{"), &[]).is_err());
    }
}
