//! Run parameters: the named values that the SQL of a bulk job uses.

use anyhow::{Context, Result, bail};
use clap::Args;
use milepost_core::bulk::parameters::{Parameters, json_or_text};
use serde_json::value::RawValue;

#[derive(Debug, Args)]
pub(super) struct ParametersArgs {
    /// All parameters, as a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "params")]
    payload: Option<String>,
    /// A parameter, which SQL reads as :NAME; may be given several times. A value that is not JSON is a string
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    params: Vec<(String, Box<RawValue>)>,
}

fn parameter(text: &str) -> Result<(String, Box<RawValue>), String> {
    let split = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = split.ok_or("give a parameter as NAME=VALUE, such as place=4711")?;
    Ok((name.to_owned(), json_or_text(value)))
}

impl ParametersArgs {
    /// Returns the parameters as one JSON object.
    pub(super) fn read(self) -> Result<Parameters> {
        let Some(payload) = self.payload else { return unique(self.params) };
        serde_json::from_str::<&RawValue>(&payload).context("--payload is not JSON")?;
        let Some(parameters) = Parameters::read(&payload) else {
            bail!(
                "--payload must be a JSON object whose members are the parameters, such as {{\"place\": 4711}}"
            );
        };
        Ok(parameters)
    }
}

fn unique(params: Vec<(String, Box<RawValue>)>) -> Result<Parameters> {
    let mut parameters = Parameters::default();
    for (name, value) in params {
        if !parameters.add(name.clone(), value) {
            bail!("the parameter {name} is given twice");
        }
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_parameter_is_json_where_it_can_be_and_else_a_text() {
        let read = |text: &str| parameter(text).map(|(name, json)| (name, json.get().to_owned())).unwrap();
        for (given, name, json) in [
            ("place=4711", "place", "4711"),
            ("large=100000000000000000001", "large", "100000000000000000001"),
            ("name=Bad Homburg", "name", "\"Bad Homburg\""),
            ("code=007", "code", "\"007\""),
            ("where=a=b", "where", "\"a=b\""),
        ] {
            assert_eq!(read(given), (name.to_owned(), json.to_owned()));
        }
        assert!(parameter("place").is_err_and(|why| why.contains("NAME=VALUE")));
        assert!(parameter("=1").is_err());
    }

    #[test]
    fn all_parameters_are_one_object() {
        let read = |payload: Option<&str>, params: &[&str]| {
            let params = params.iter().map(|text| parameter(text).unwrap()).collect();
            ParametersArgs { payload: payload.map(str::to_owned), params }.read().map(|read| json!(read))
        };
        assert_eq!(read(None, &[]).unwrap(), json!({}));
        assert_eq!(read(None, &["a=1", "b=x"]).unwrap(), json!({ "a": 1, "b": "x" }));
        assert_eq!(read(Some("{\"a\": null}"), &[]).unwrap(), json!({ "a": null }));
        assert!(read(None, &["a=1", "a=2"]).is_err());
        assert!(read(Some("[1]"), &[]).is_err() && read(Some("{"), &[]).is_err());
    }
}
