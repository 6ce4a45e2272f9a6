//! Targets from a file: rows that are staged in a table of the store, numbered from 1, and then read by a source like any other targets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use super::sql::Dialect;
use crate::job::PAYLOAD_BYTES_MAX;
use crate::json::check_text;
use crate::named::named_enum;

/// The key column of staged rows: their number in the file, from 1.
pub const NUMBER: &str = "n";
/// The parameter with which the source of staged rows selects the rows of its run, or of the run whose failures it retries.
pub const ORIGIN: &str = "milepost_origin";
/// The maximum size of a staged row as JSON text, in bytes.
pub const ROW_BYTES_MAX: usize = 1024 * 1024;
/// The maximum number of columns.
pub const COLUMNS_MAX: usize = 200;
/// The maximum length of a column name, in bytes; PostgreSQL truncates longer names.
const NAME_BYTES_MAX: usize = 63;

named_enum! {
    /// The type of a column of a file.
    ColumnType {
        /// Text, as it is in the file.
        Text = "text",
        /// A 64-bit integer.
        Integer = "integer",
        /// A number.
        Number = "number",
        /// `true` or `false`; on SQLite 1 or 0.
        Boolean = "boolean",
        /// JSON of any type; on SQLite its text.
        Json = "json",
    }
}

/// The columns of a file that a bulk job reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, ColumnType>", into = "BTreeMap<String, ColumnType>")]
pub struct Columns(BTreeMap<String, ColumnType>);

/// Invalid columns of a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidColumns {
    /// The number of columns is out of range.
    #[error("a bulk job over a file must have 1 to {COLUMNS_MAX} columns; {given} are given")]
    Count {
        /// The given number.
        given: usize,
    },
    /// An invalid column name.
    #[error(
        "{name:?} cannot be the name of a column: use letters, digits, blanks and _ - . only, begin with a letter or _, and use at most 63 bytes"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The reserved name of the row number.
    #[error("{name:?} is reserved for the number of the row; give that column another name in the file")]
    Number {
        /// The name.
        name: String,
    },
    /// Two names that differ only in case, which databases treat as the same name.
    #[error("{name:?} and {other:?} are the same name to a database; rename one of them")]
    Same {
        /// A name.
        name: String,
        /// Another one.
        other: String,
    },
}

/// A value from the file.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// Untyped text. An empty text is a missing value unless the column has type text.
    Field(&'a str),
    /// JSON. `null` is a missing value.
    Json(&'a RawValue),
}

/// A row that does not match its columns.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct BadRow {
    /// The column; `None` for the row as a whole.
    pub column: Option<String>,
    /// The reason.
    pub why: String,
}

impl Columns {
    /// Creates a set of columns.
    ///
    /// # Errors
    /// [`InvalidColumns`] with the invalid name.
    pub fn new<N: Into<String>>(
        columns: impl IntoIterator<Item = (N, ColumnType)>,
    ) -> Result<Self, InvalidColumns> {
        columns.into_iter().map(|(name, of)| (name.into(), of)).collect::<BTreeMap<_, _>>().try_into()
    }

    /// Returns their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the source query for the staged rows of a run: the row number `n`, and each column with its type.
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

    /// Returns the key of that source.
    #[must_use]
    pub fn key() -> Vec<String> {
        vec![NUMBER.to_owned()]
    }

    /// Converts a row to its staged form: a JSON object with the values of these columns. Other fields of the file and
    /// columns without a value are omitted.
    ///
    /// # Errors
    /// [`BadRow`] with the value that is missing or does not match the type of its column.
    pub fn row<'a>(&self, mut given: impl FnMut(&str) -> Option<Given<'a>>) -> Result<String, BadRow> {
        let mut row = String::from("{");
        for (name, of) in &self.0 {
            let bad = |why| BadRow { column: Some(name.clone()), why };
            let given = given(name).ok_or_else(|| bad(format!("there is no {name:?}")))?;
            let value = of.value(given).map_err(|why| bad(format!("{name:?} {why}")))?;
            let Some(value) = value else { continue };
            row.push_str(if row.len() > 1 { ",\"" } else { "\"" });
            // Column names contain no characters that JSON escapes.
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

    /// Converts a row that is a JSON object.
    ///
    /// # Errors
    /// As [`row`](Self::row); also when the text is not an object.
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
    /// Returns the expression that reads a column of this type from a staged row.
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

    /// Converts the value to JSON; `None` when it is missing.
    fn value(self, given: Given<'_>) -> Result<Option<String>, String> {
        match given {
            Given::Field("") if self != Self::Text => Ok(None),
            Given::Field(field) => self.of_text(field).map(Some),
            Given::Json(json) if json.get() == "null" => Ok(None),
            Given::Json(json) if self == Self::Json => checked(json.get()).map(Some),
            Given::Json(json) => match json.get().as_bytes() {
                [b'"', ..] => {
                    let text: String = serde_json::from_str(json.get())
                        .map_err(|_| "is not valid Unicode text, so no database can store it".to_owned())?;
                    self.of_text(&text).map(Some)
                }
                [b'{' | b'[', ..] => {
                    Err(format!("is an object or an array, but the column has the type {self}"))
                }
                _ => self.of_text(json.get()).map(Some),
            },
        }
    }

    /// Converts a text to a JSON value of this type.
    fn of_text(self, text: &str) -> Result<String, String> {
        let shown = || text.chars().take(40).collect::<String>();
        match self {
            Self::Text if text.contains('\0') => {
                Err("contains a NUL character, which no database can store".to_owned())
            }
            Self::Text => Ok(Value::from(text).to_string()),
            Self::Integer => match text.parse::<i64>() {
                Ok(number) => Ok(number.to_string()),
                Err(_) => Err(format!("is {:?}, which is not a 64-bit integer", shown())),
            },
            Self::Number => {
                let is_json = serde_json::from_str::<serde_json::Number>(text).is_ok();
                let is_number = is_json && text.parse::<f64>().is_ok_and(f64::is_finite);
                if is_number {
                    checked(text)
                } else {
                    Err(format!("is {:?}, which is not a number", shown()))
                }
            }
            Self::Boolean if matches!(text, "true" | "false") => Ok(text.to_owned()),
            Self::Boolean => Err(format!("is {:?}, which is neither true nor false", shown())),
            Self::Json => checked(text),
        }
    }
}

/// Checks JSON that both databases can store.
fn checked(json: &str) -> Result<String, String> {
    check_text(json, PAYLOAD_BYTES_MAX).map_err(|invalid| invalid.to_string().replace("the payload ", ""))?;
    Ok(json.to_owned())
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
        assert_eq!(bad("id", "1.5").why, "\"id\" is \"1.5\", which is not a 64-bit integer");
        assert_eq!(bad("id", "9223372036854775808").column.as_deref(), Some("id"));
        assert_eq!(bad("vip", "\"yes\"").why, "\"vip\" is \"yes\", which is neither true nor false");
        assert_eq!(bad("score", "\"NaN\"").why, "\"score\" is \"NaN\", which is not a number");
        assert_eq!(bad("score", "1e999").why, "\"score\" is \"1e999\", which is not a number");
        assert!(bad("name", "{}").why.contains("an object or an array"));
        assert!(bad("name", r#""a\u0000""#).why.contains("NUL"));
        assert!(bad("name", r#""\ud800""#).why.contains("no database can store"));
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
