//! Targets from a file: rows that are staged in a table of Milepost's own, numbered from 1, which is then a source like
//! any other.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use super::sql::Dialect;
use crate::job::PAYLOAD_DEPTH_MAX;
use crate::json::{depth, holds_nul};
use crate::state::named_enum;

/// The column by which staged rows are gone through: their number in the file, from 1.
pub const NUMBER: &str = "n";
/// The parameter by which the source of staged rows asks for those of its run, or of the run whose failures it tries
/// again.
pub const ORIGIN: &str = "milepost_origin";
/// The largest row that is staged, as JSON text.
pub const ROW_BYTES_MAX: usize = 1024 * 1024;
/// The most columns.
pub const COLUMNS_MAX: usize = 200;
/// The longest name of a column, in bytes: a longer one would be cut by PostgreSQL.
const NAME_BYTES_MAX: usize = 63;

named_enum! {
    /// What a column of a file holds.
    ColumnType {
        /// Text, as it stands in the file.
        Text = "text",
        /// A whole number of 64 bits.
        Integer = "integer",
        /// A number.
        Number = "number",
        /// `true` or `false`; on SQLite 1 or 0.
        Boolean = "boolean",
        /// JSON of any sort; on SQLite its text.
        Json = "json",
    }
}

/// The columns of a file that a bulk job reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, ColumnType>", into = "BTreeMap<String, ColumnType>")]
pub struct Columns(BTreeMap<String, ColumnType>);

/// Columns that no statement can be written of.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidColumns {
    /// Too few or too many.
    #[error("a bulk job over a file has 1 to {COLUMNS_MAX} columns, and {given} are given")]
    Count {
        /// How many.
        given: usize,
    },
    /// A name that cannot be one.
    #[error(
        "{name:?} cannot be the name of a column: letters, digits, blanks and _ - . make one, a letter or _ first, 63 bytes at most"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The name of the row's number.
    #[error("{name:?} is the number of the row in the file; give that column another name in the file")]
    Number {
        /// The name.
        name: String,
    },
    /// Databases take names in any case for the same.
    #[error("{name:?} and {other:?} are one name to a database")]
    Same {
        /// A name.
        name: String,
        /// Another one.
        other: String,
    },
}

/// A value as the file gives it.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// Text without a type. Empty, it is no value unless the column holds text.
    Field(&'a str),
    /// JSON. `null` is no value.
    Json(&'a RawValue),
}

/// A row that is not what its columns say.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct BadRow {
    /// The column; `None`: the row as a whole.
    pub column: Option<String>,
    /// What is wrong.
    pub why: String,
}

impl Columns {
    /// These columns.
    ///
    /// # Errors
    /// Says which name cannot be one.
    pub fn new<N: Into<String>>(
        columns: impl IntoIterator<Item = (N, ColumnType)>,
    ) -> Result<Self, InvalidColumns> {
        columns.into_iter().map(|(name, of)| (name.into(), of)).collect::<BTreeMap<_, _>>().try_into()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What goes through the staged rows of a run: their number `n`, and each column with its type.
    #[must_use]
    pub fn source(&self, dialect: Dialect) -> String {
        let column = |(name, of): (&String, &ColumnType)| format!("{} as \"{name}\"", of.read(name, dialect));
        let columns: Vec<String> = self.0.iter().map(column).collect();
        let table = match dialect {
            Dialect::Postgres => "milepost.bulk_target",
            Dialect::Sqlite => "milepost_bulk_target",
        };
        format!(
            "select {NUMBER}, {} from {table} where run = :{ORIGIN} and {NUMBER} > :cursor order by {NUMBER} limit :limit",
            columns.join(", ")
        )
    }

    /// The key of that source.
    #[must_use]
    pub fn key() -> Vec<String> {
        vec![NUMBER.to_owned()]
    }

    /// A row as it is staged: a JSON object with what these columns are given. What else the file has is left out, as
    /// are columns without a value.
    ///
    /// # Errors
    /// Says which value is missing or not what its column holds.
    pub fn row<'a>(&self, mut given: impl FnMut(&str) -> Option<Given<'a>>) -> Result<String, BadRow> {
        let mut row = String::from("{");
        for (name, of) in &self.0 {
            let bad = |why| BadRow { column: Some(name.clone()), why };
            let given = given(name).ok_or_else(|| bad(format!("there is no {name:?}")))?;
            let value = of.value(given).map_err(|why| bad(format!("{name:?} {why}")))?;
            let Some(value) = value else { continue };
            row.push_str(if row.len() > 1 { ",\"" } else { "\"" });
            // A name has nothing in it that JSON escapes.
            row.push_str(name);
            row.push_str("\":");
            row.push_str(&value);
        }
        row.push('}');
        if row.len() > ROW_BYTES_MAX {
            let why = format!("the row has {} bytes, more than {ROW_BYTES_MAX}", row.len());
            return Err(BadRow { column: None, why });
        }
        Ok(row)
    }

    /// The same of a JSON object.
    ///
    /// # Errors
    /// As [`row`](Self::row); also when it is no object.
    pub fn row_of_json(&self, object: &str) -> Result<String, BadRow> {
        let members: std::collections::HashMap<String, &RawValue> = serde_json::from_str(object)
            .map_err(|_| BadRow { column: None, why: "this is not a JSON object".to_owned() })?;
        self.row(|name| members.get(name).map(|value| Given::Json(value)))
    }
}

impl TryFrom<BTreeMap<String, ColumnType>> for Columns {
    type Error = InvalidColumns;

    fn try_from(columns: BTreeMap<String, ColumnType>) -> Result<Self, InvalidColumns> {
        if !(1..=COLUMNS_MAX).contains(&columns.len()) {
            return Err(InvalidColumns::Count { given: columns.len() });
        }
        let mut known: BTreeMap<String, &String> = BTreeMap::new();
        for name in columns.keys() {
            let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
            let begins = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
            if !begins || name.len() > NAME_BYTES_MAX || !name.chars().all(fits) {
                return Err(InvalidColumns::Name { name: name.clone() });
            }
            let folded = name.to_lowercase();
            if folded == NUMBER {
                return Err(InvalidColumns::Number { name: name.clone() });
            }
            if let Some(other) = known.insert(folded, name) {
                return Err(InvalidColumns::Same { name: name.clone(), other: other.clone() });
            }
        }
        Ok(Self(columns))
    }
}

impl From<Columns> for BTreeMap<String, ColumnType> {
    fn from(columns: Columns) -> Self {
        columns.0
    }
}

impl ColumnType {
    /// The expression that reads a column of this type out of a staged row.
    fn read(self, name: &str, dialect: Dialect) -> String {
        let arrow = if self == Self::Json { "->" } else { "->>" };
        match dialect {
            Dialect::Sqlite => format!("\"row\" {arrow} '$.\"{name}\"'"),
            Dialect::Postgres => {
                let value = format!("\"row\" {arrow} '{name}'");
                match self {
                    Self::Text | Self::Json => value,
                    Self::Integer => format!("({value})::bigint"),
                    Self::Number => format!("({value})::numeric"),
                    Self::Boolean => format!("({value})::boolean"),
                }
            }
        }
    }

    /// The value as JSON; `None`: there is none.
    fn value(self, given: Given<'_>) -> Result<Option<String>, String> {
        match given {
            Given::Field("") if self != Self::Text => Ok(None),
            Given::Field(field) => self.of_text(field).map(Some),
            Given::Json(json) if json.get() == "null" => Ok(None),
            Given::Json(json) if self == Self::Json => checked(json.get()).map(Some),
            Given::Json(json) => match json.get().as_bytes() {
                [b'"', ..] => {
                    let text: String = serde_json::from_str(json.get())
                        .map_err(|_| "is a text that no database can keep".to_owned())?;
                    self.of_text(&text).map(Some)
                }
                [b'{' | b'[', ..] => Err(format!("is an object or an array, and the column holds {self}")),
                _ => self.of_text(json.get()).map(Some),
            },
        }
    }

    /// What a text says, as JSON.
    fn of_text(self, text: &str) -> Result<String, String> {
        let shown = || text.chars().take(40).collect::<String>();
        match self {
            Self::Text if text.contains('\0') => Err("has a NUL in it, which no database takes".to_owned()),
            Self::Text => Ok(Value::from(text).to_string()),
            Self::Integer => match text.parse::<i64>() {
                Ok(number) => Ok(number.to_string()),
                Err(_) => Err(format!("is {:?}, and not a whole number of 64 bits", shown())),
            },
            Self::Number => {
                let is_json = serde_json::from_str::<serde_json::Number>(text).is_ok();
                let is_number = is_json && text.parse::<f64>().is_ok_and(f64::is_finite);
                if is_number {
                    Ok(text.to_owned())
                } else {
                    Err(format!("is {:?}, and not a number", shown()))
                }
            }
            Self::Boolean if matches!(text, "true" | "false") => Ok(text.to_owned()),
            Self::Boolean => Err(format!("is {:?}, and neither true nor false", shown())),
            Self::Json => checked(text),
        }
    }
}

/// JSON that both databases can keep.
fn checked(json: &str) -> Result<String, String> {
    if depth(json) > PAYLOAD_DEPTH_MAX {
        return Err(format!("is nested deeper than {PAYLOAD_DEPTH_MAX} levels"));
    }
    if holds_nul(json) {
        return Err("has a NUL in it, which no database takes".to_owned());
    }
    match serde_json::from_str::<Value>(json) {
        Ok(_) => Ok(json.to_owned()),
        Err(error) => Err(format!("is not JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(columns: &[(&str, ColumnType)]) -> Result<Columns, InvalidColumns> {
        Columns::new(columns.iter().map(|(name, of)| (*name, *of)))
    }

    fn members() -> Columns {
        use ColumnType::{Boolean, Integer, Json, Number, Text};
        columns(&[("id", Integer), ("name", Text), ("vip", Boolean), ("score", Number), ("tags", Json)])
            .unwrap()
    }

    #[test]
    fn the_source_is_a_keyset_query_that_names_each_column_with_its_type() {
        let two = columns(&[("member id", ColumnType::Integer), ("text", ColumnType::Text)]).unwrap();
        assert_eq!(
            two.source(Dialect::Postgres),
            "select n, (\"row\" ->> 'member id')::bigint as \"member id\", \"row\" ->> 'text' as \"text\" \
             from milepost.bulk_target where run = :milepost_origin and n > :cursor order by n limit :limit"
        );
        for dialect in [Dialect::Postgres, Dialect::Sqlite] {
            let source = super::super::sql::Source::parse(&two.source(dialect), &Columns::key(), dialect);
            assert!(source.unwrap().is_staged());
        }
    }

    #[test]
    fn a_row_keeps_what_its_columns_name_as_their_types() {
        let row = |json: &str| members().row_of_json(json).map_err(|bad| bad.why);
        assert_eq!(
            row(r#"{"x": 1, "id": "7", "name": 12, "vip": true, "score": 1.50, "tags": ["a"]}"#).unwrap(),
            r#"{"id":7,"name":"12","score":1.50,"tags":["a"],"vip":true}"#
        );
        assert_eq!(row(r#"{"id":null,"name":null,"vip":null,"score":null,"tags":null}"#).unwrap(), "{}");
        let fields = members().row(|_| Some(Given::Field("")));
        assert_eq!(fields.unwrap(), r#"{"name":""}"#, "only text can be empty");
    }

    #[test]
    fn a_value_that_is_not_what_its_column_holds_is_told() {
        let bad = |name: &str, value: &str| {
            let others = r#""id": 1, "name": "", "vip": false, "score": 0, "tags": 0"#;
            members().row_of_json(&format!("{{{others}, \"{name}\": {value}}}")).unwrap_err()
        };
        assert_eq!(bad("id", "1.5").why, "\"id\" is \"1.5\", and not a whole number of 64 bits");
        assert_eq!(bad("id", "9223372036854775808").column.as_deref(), Some("id"));
        assert_eq!(bad("vip", "\"yes\"").why, "\"vip\" is \"yes\", and neither true nor false");
        assert_eq!(bad("score", "\"NaN\"").why, "\"score\" is \"NaN\", and not a number");
        assert_eq!(bad("score", "1e999").why, "\"score\" is \"1e999\", and not a number");
        assert!(bad("name", "{}").why.contains("an object or an array"));
        assert!(bad("name", r#""a\u0000""#).why.contains("NUL"));
        assert!(bad("name", r#""\ud800""#).why.contains("no database can keep"));
        assert!(bad("tags", r#"["\u0000"]"#).why.contains("NUL"));
        assert_eq!(members().row_of_json("{}").unwrap_err().why, "there is no \"id\"");
        assert_eq!(members().row_of_json("[1]").unwrap_err().column, None);
        let long = format!("\"{}\"", "x".repeat(ROW_BYTES_MAX));
        assert!(bad("name", &long).why.contains("more than 1048576"));
    }

    #[test]
    fn names_that_would_not_be_safe_or_clear_in_a_statement_are_refused() {
        let one = |name: &str| columns(&[(name, ColumnType::Text)]);
        for name in ["", "a\"b", "a'b", "a:b", "1a", "a\nb", "a;b", &"x".repeat(64)] {
            assert!(matches!(one(name), Err(InvalidColumns::Name { .. })), "{name}");
        }
        for name in ["member_id", "E-Mail", "größe", "Last name", "_1"] {
            assert!(one(name).is_ok(), "{name}");
        }
        assert!(matches!(one("N"), Err(InvalidColumns::Number { .. })));
        let same = columns(&[("Id", ColumnType::Text), ("id", ColumnType::Text)]);
        assert!(matches!(same, Err(InvalidColumns::Same { .. })));
        assert!(matches!(columns(&[]), Err(InvalidColumns::Count { given: 0 })));
    }

    #[test]
    fn columns_are_kept_as_json_and_read_back_checked() {
        let kept = serde_json::to_string(&members()).unwrap();
        assert_eq!(serde_json::from_str::<Columns>(&kept).unwrap(), members());
        assert!(serde_json::from_str::<Columns>(r#"{"a'b": "text"}"#).is_err());
    }
}
