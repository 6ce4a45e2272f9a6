//! The statements of a bulk job as people read them, and the parameters that they use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::error::InvalidBulk;
use super::parameters::Parameters;
use super::sql::{Apply, Source};
use super::staged::{ColumnType, ORIGIN};
use crate::secrets::Secrets;
use crate::text::without_nul;

/// The parameters that Milepost provides to every run.
pub const PROVIDED: [&str; 4] = ["bulk_id", "run_id", "nominal_at", ORIGIN];

/// What a bulk job reads and does, for those who examine or start it. Workers use their own configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statements {
    /// The query of its targets; `None` if they come from a file.
    pub source: Option<String>,
    /// The statement that is applied to a chunk, or a sentence about another effect; `None` if it is a function.
    pub effect: Option<String>,
    /// The parameters that each run must have, and their types where a cast in the SQL shows them.
    pub parameters: BTreeMap<String, Option<ColumnType>>,
}

impl Statements {
    /// Returns the statements of a bulk job in SQL. `apply` is `None` if its effect is not in SQL.
    #[must_use]
    pub fn of(source: &Source, apply: Option<&Apply>) -> Self {
        let used = source.typed_parameters().chain(apply.into_iter().flat_map(Apply::typed_parameters));
        let mut parameters: BTreeMap<String, Option<ColumnType>> = BTreeMap::new();
        for (name, cast) in used.filter(|(name, _)| !PROVIDED.contains(name)) {
            let known = parameters.entry(name.to_owned()).or_default();
            *known = known.or(cast);
        }
        let of_tables = Some(source).filter(|source| !source.is_staged());
        Self {
            source: of_tables.map(|source| source.text().to_owned()),
            effect: apply.map(|apply| apply.text().to_owned()),
            parameters,
        }
    }

    /// Returns them as JSON for a store, without NUL, which PostgreSQL cannot keep.
    #[must_use]
    pub fn to_json(&self) -> String {
        let clean = |text: &Option<String>| text.as_deref().map(without_nul);
        let clean = Self {
            source: clean(&self.source),
            effect: clean(&self.effect),
            parameters: self.parameters.clone(),
        };
        json!(clean).to_string()
    }

    /// Returns them with these secrets replaced.
    #[must_use]
    pub fn hiding(self, secrets: &Secrets) -> Self {
        let hide = |text: Option<String>| text.map(|text| secrets.hide(text));
        Self { source: hide(self.source), effect: hide(self.effect), ..self }
    }

    /// Refuses parameters if one that the statements use is missing.
    ///
    /// # Errors
    /// [`InvalidBulk::NoParameter`] names the first one.
    pub fn check_parameters(&self, given: &Parameters) -> Result<(), InvalidBulk> {
        let missing = self.parameters.keys().find(|name| given.get(name).is_none());
        missing.map_or(Ok(()), |name| Err(InvalidBulk::NoParameter { name: name.clone() }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::super::sql::Dialect;
    use super::*;

    fn statements(source: &str, apply: &str, dialect: Dialect) -> Statements {
        let key = ["id".to_owned()];
        let source = Source::parse(source, &key, dialect).unwrap();
        Statements::of(&source, Some(&Apply::parse(apply, &key, dialect).unwrap()))
    }

    #[test]
    fn the_types_of_parameters_are_those_of_their_casts() {
        let its = statements(
            "select id from member where place = :place::bigint and day < cast(:until as date) and tag = :tag \
             and names = any (:names::text[]) and id > :cursor order by id limit :limit",
            "update member set note = :text, share = :share :: double precision, on_time = CAST(:on AS boolean), \
             extra = :extra::jsonb, run = :bulk_id, tag = :tag::integer from chunk where member.id = chunk.id",
            Dialect::Postgres,
        );
        let types: Vec<_> = its.parameters.iter().map(|(name, its)| (name.as_str(), *its)).collect();
        assert_eq!(
            types,
            [
                ("extra", Some(ColumnType::Json)),
                ("names", Some(ColumnType::Text)),
                ("on", Some(ColumnType::Boolean)),
                ("place", Some(ColumnType::Integer)),
                ("share", Some(ColumnType::Number)),
                ("tag", Some(ColumnType::Integer)),
                ("text", None),
                ("until", Some(ColumnType::Text)),
            ]
        );
    }

    #[test]
    fn a_missing_parameter_is_named_and_provided_ones_are_not_asked_for() {
        let its = statements(
            "select id from member where place = :place and at < :nominal_at and id > :cursor order by id limit :limit",
            "delete from member where id in (select id from chunk)",
            Dialect::Sqlite,
        );
        let check = |given: &str| its.check_parameters(&Parameters::read(given).unwrap());
        assert_eq!(check(r#"{"place": null}"#), Ok(()));
        let missing = InvalidBulk::NoParameter { name: "place".to_owned() };
        assert_eq!(check("{}"), Err(missing));
        assert!(its.source.unwrap().ends_with("limit :limit") && its.effect.unwrap().starts_with("delete"));
    }

    #[test]
    fn what_is_stored_has_neither_secrets_nor_nul() {
        let source = Some("select id from member where code = 'hush-hush-1'\0".to_owned());
        let stored =
            Statements { source, ..Statements::default() }.hiding(&Secrets::new(["hush-hush-1".to_owned()]));
        let stored: Statements = serde_json::from_str(&stored.to_json()).unwrap();
        assert_eq!(stored.source.unwrap(), "select id from member where code = '[secret]'\u{fffd}");
    }
}
