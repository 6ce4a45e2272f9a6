//! Source queries: SELECT statements that read the targets of a bulk job in key order.

use sqlparser::keywords::Keyword;

use super::cursor::compared;
use super::tail::{Tail, words};
use super::text::{Piece, Text, TypedParameters};
use super::{Dialect, InvalidSql, Placeholders};
use crate::bulk::staged::{ColumnType, ORIGIN};

/// The part of the targets that a query covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// The next targets from the beginning.
    First,
    /// The next targets after the cursor.
    Next,
    /// The last target.
    Last,
    /// All targets after the cursor, in no order.
    After,
    /// All targets, in no order.
    All,
}

/// A valid source query, in pieces.
#[derive(Clone, Debug)]
pub struct Source {
    text: String,
    parameters: TypedParameters,
    dialect: Dialect,
    key: Vec<String>,
    /// The text before the comparison with the cursor.
    before: Vec<Piece>,
    /// The text from there to ORDER BY.
    after: Vec<Piece>,
    /// The expressions of ORDER BY, one per column.
    order: Vec<String>,
}

impl Source {
    /// Parses `select … where key > :cursor … order by key limit :limit`.
    ///
    /// # Errors
    /// [`InvalidSql`] with the missing or disallowed part.
    pub fn parse(sql: &str, key: &[String], dialect: Dialect) -> Result<Self, InvalidSql> {
        if key.is_empty() {
            return Err(InvalidSql::NoKey);
        }
        let text = Text::read(sql, dialect)?;
        if !text.begins_with(&[Keyword::SELECT, Keyword::WITH]) {
            return Err(InvalidSql::NotAQuery);
        }
        let tail = Tail::find(&text, key)?;
        let (from, to) = compared(&text, &tail)?;
        let before = text.pieces(0, from);
        let after = text.pieces(to, text.lexemes[tail.at].start);
        let order = tail.columns.iter().map(|column| words(&text, column)).collect();
        Ok(Self {
            parameters: text.typed_parameters(),
            text: text.sql,
            dialect,
            key: key.to_vec(),
            before,
            after,
            order,
        })
    }

    /// Returns the names of its key columns.
    #[must_use]
    pub fn key(&self) -> &[String] {
        &self.key
    }

    /// Returns the statement as it is written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns its parameters where they are used, with the types of their casts.
    pub fn typed_parameters(&self) -> impl Iterator<Item = (&str, Option<ColumnType>)> {
        self.parameters.iter().map(|(name, cast)| (name.as_str(), *cast))
    }

    /// Returns the names of its parameters, each once.
    #[must_use]
    pub fn parameters(&self) -> Vec<&str> {
        names(self.before.iter().chain(&self.after))
    }

    /// Returns whether its targets are the staged rows of a file.
    #[must_use]
    pub fn is_staged(&self) -> bool {
        self.parameters().contains(&ORIGIN)
    }

    /// Returns the query for this part of the targets.
    pub fn query(&self, bounds: Bounds, placeholders: &mut impl Placeholders) -> String {
        let mut sql = String::new();
        write(&mut sql, &self.before, placeholders);
        let comparison = self.comparison(bounds, placeholders);
        // The source may have been written as `id>:cursor`.
        if comparison.starts_with(char::is_alphabetic) && !sql.ends_with([' ', '\n', '\t', '\r', ')', '"']) {
            sql.push(' ');
        }
        sql.push_str(&comparison);
        write(&mut sql, &self.after, placeholders);
        match bounds {
            Bounds::After | Bounds::All => {}
            Bounds::Last => {
                let order: Vec<String> = self.order.iter().map(|column| format!("{column} desc")).collect();
                sql.push_str(&format!(" order by {} limit 1", order.join(", ")));
            }
            Bounds::First | Bounds::Next => {
                let (order, limit) = (self.order.join(", "), placeholders.limit());
                sql.push_str(&match self.dialect {
                    // Targets with the same key are always in the same chunk.
                    Dialect::Postgres => format!(" order by {order} fetch first ({limit}) rows with ties"),
                    Dialect::Sqlite => format!(" order by {order} limit {limit}"),
                });
            }
        }
        sql
    }

    /// Returns the text after the key columns: `> …`, or a condition that is true for every key.
    fn comparison(&self, bounds: Bounds, placeholders: &mut impl Placeholders) -> String {
        let row = |columns: Vec<String>| match columns.as_slice() {
            [column] => column.clone(),
            _ => format!("({})", columns.join(", ")),
        };
        // Rows with a null in their key have no position in the order and are not targets.
        let known = match (self.key.len(), self.dialect) {
            (1, _) | (_, Dialect::Postgres) => "is not null".to_owned(),
            (_, Dialect::Sqlite) => format!("= {}", row(self.order.clone())),
        };
        if matches!(bounds, Bounds::First | Bounds::Last | Bounds::All) {
            return known;
        }
        let cursor = row((0..self.key.len()).map(|column| placeholders.cursor(column)).collect());
        if self.key.len() == 1 {
            return format!("> {cursor}");
        }
        format!("> {cursor} and {} {known}", row(self.order.clone()))
    }
}

pub(super) fn names<'a>(pieces: impl Iterator<Item = &'a Piece>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Parameter(name) if !names.contains(&name.as_str()) => names.push(name),
            _ => {}
        }
    }
    names
}

pub(super) fn write(sql: &mut String, pieces: &[Piece], placeholders: &mut impl Placeholders) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => sql.push_str(text),
            Piece::Parameter(name) => sql.push_str(&placeholders.parameter(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Placeholders in a readable form.
    struct Shown;

    impl Placeholders for Shown {
        fn parameter(&mut self, name: &str) -> String {
            format!("<{name}>")
        }
        fn cursor(&mut self, column: usize) -> String {
            format!("<c{column}>")
        }
        fn limit(&mut self) -> String {
            "<n>".to_owned()
        }
    }

    fn parse(sql: &str, key: &[&str]) -> Result<Source, InvalidSql> {
        let key: Vec<String> = key.iter().map(|&name| name.to_owned()).collect();
        Source::parse(sql, &key, Dialect::Postgres)
    }

    const MEMBERS: &str = "select id, ':no' from member -- all\nwhere id > :cursor and place = :place order by id limit :limit;";

    #[test]
    fn a_source_is_asked_from_the_beginning_from_the_cursor_for_its_last_and_for_all() {
        let source = parse(MEMBERS, &["id"]).unwrap();
        let shown = |bounds| source.query(bounds, &mut Shown);
        let begins = "select id, ':no' from member -- all\nwhere id ";
        assert_eq!(
            shown(Bounds::Next),
            format!("{begins}> <c0> and place = <place>  order by id fetch first (<n>) rows with ties")
        );
        assert_eq!(
            shown(Bounds::First),
            format!("{begins}is not null and place = <place>  order by id fetch first (<n>) rows with ties")
        );
        assert_eq!(
            shown(Bounds::Last),
            format!("{begins}is not null and place = <place>  order by id desc limit 1")
        );
        assert_eq!(shown(Bounds::All), format!("{begins}is not null and place = <place> "));
        assert_eq!(source.parameters(), ["place"]);
    }

    #[test]
    fn a_comparison_needs_no_space_around_its_operator() {
        let source =
            parse("select id from member where id>:cursor order by id limit :limit", &["id"]).unwrap();
        let shown = |bounds| source.query(bounds, &mut Shown);
        assert_eq!(shown(Bounds::All), "select id from member where id is not null ");
        assert!(shown(Bounds::Next).starts_with("select id from member where id> <c0>"));
    }

    #[test]
    fn a_composite_key_is_compared_as_a_row_on_both_stores() {
        let sql = "select m.place, m.id from member m where (m.place, m.id) > :cursor order by m.place asc, m.id limit :limit";
        let key = ["place".to_owned(), "id".to_owned()];
        for (dialect, known) in [
            (Dialect::Postgres, "(m.place, m.id) is not null "),
            (Dialect::Sqlite, "(m.place, m.id) = (m.place, m.id) "),
        ] {
            let source = Source::parse(sql, &key, dialect).unwrap();
            let next = source.query(Bounds::Next, &mut Shown);
            assert!(next.contains(&format!("(m.place, m.id) > (<c0>, <c1>) and {known} order by")), "{next}");
            let first = source.query(Bounds::First, &mut Shown);
            assert!(first.contains(&format!("where {known} order by m.place, m.id ")), "{first}");
        }
    }

    #[test]
    fn what_a_source_lacks_is_named() {
        let error = |sql: &str| parse(sql, &["id"]).unwrap_err();
        assert_eq!(error("  -- nothing\n"), InvalidSql::Empty);
        assert_eq!(error("delete from member"), InvalidSql::NotAQuery);
        assert_eq!(error("select 1; select 2"), InvalidSql::SeveralStatements);
        assert!(matches!(error("select id from m where id > $1"), InvalidSql::Positional { .. }));
        assert!(matches!(error("select id from m where id > :cursor"), InvalidSql::NoOrder { .. }));
        assert!(matches!(error("select id from m order by id limit :limit"), InvalidSql::NoCursor { .. }));
        assert!(matches!(
            error("select id from m where id > :cursor order by x limit :limit"),
            InvalidSql::OrderIsNotKey { .. }
        ));
        assert!(matches!(
            error("select id from m where id < :cursor order by id desc limit :limit"),
            InvalidSql::Descending { .. }
        ));
        assert!(matches!(
            error("select id from m where id < :cursor order by id limit :limit"),
            InvalidSql::Descending { .. }
        ));
        assert_eq!(
            error("select id from m where id > :cursor and b > :cursor order by id limit :limit"),
            InvalidSql::CursorTwice
        );
    }

    #[test]
    fn a_cursor_that_is_not_simply_compared_is_refused() {
        for condition in [
            "id >= :cursor",
            "id > :cursor + 1",
            "id > :cursor or vip",
            "x > :cursor",
            "not id > :cursor",
            "-id > :cursor",
            "id > :cursor::bigint",
            "(id > :cursor) or vip",
            "vip or id > :cursor and place = 7",
            "(vip or (id > :cursor))",
            "not (id > :cursor)",
            "coalesce(id > :cursor, true)",
            "(id > :cursor) is not false",
        ] {
            let sql = format!("select id from m where {condition} order by id limit :limit");
            assert!(matches!(parse(&sql, &["id"]), Err(InvalidSql::CursorNotCompared { .. })), "{condition}");
        }
        for condition in [
            "(id > :cursor)",
            "(vip or place = 7) and ((id > :cursor and not gone))",
            "id > :cursor and (vip or place = 7)",
        ] {
            let sql =
                format!("select id from m join o on a = b or c where {condition} order by id limit :limit");
            assert!(parse(&sql, &["id"]).is_ok(), "{condition}");
        }
    }

    #[test]
    fn an_inner_order_and_quoted_names_are_left_alone() {
        let sql = "select \"Id\", (select n from x order by n limit 1) from m join (select 1 order by 1) s on true \
                   where \"Id\" > :cursor order by \"Id\" limit :limit";
        let source = parse(sql, &["Id"]).unwrap();
        assert!(source.query(Bounds::Last, &mut Shown).ends_with("order by \"Id\" desc limit 1"));
    }
}
