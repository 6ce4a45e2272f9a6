//! Apply statements: the SQL that is executed for the targets of a chunk.

use sqlparser::ast::{AssignmentTarget, ObjectName, ObjectNamePart, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;

use super::source::{names, write};
use super::text::{PARTS, Piece, Text, TypedParameters};
use super::{CHUNK, Dialect, InvalidSql, Placeholders};
use crate::bulk::staged::ColumnType;
use crate::dag::stack;

/// A valid apply statement, in pieces.
#[derive(Clone, Debug)]
pub struct Apply {
    text: String,
    parameters: TypedParameters,
    /// The part before which further common table expressions can be inserted: `with recursive`, or nothing.
    with: Option<Vec<Piece>>,
    rest: Vec<Piece>,
    is_query: bool,
}

impl Apply {
    /// Parses a statement over the relation `chunk`. `key` contains the key columns of its source.
    ///
    /// # Errors
    /// [`InvalidSql`] with the missing or disallowed part.
    pub fn parse(sql: &str, key: &[String], dialect: Dialect) -> Result<Self, InvalidSql> {
        let text = Text::read(sql, dialect)?;
        if let Some(its) = text.parameters.iter().find(|its| PARTS.contains(&its.name.as_str())) {
            let instead = "an apply statement reads the rows of its chunk from the relation `chunk`";
            return Err(InvalidSql::Misplaced { name: its.name.clone(), instead });
        }
        let changes = [Keyword::INSERT, Keyword::UPDATE, Keyword::DELETE, Keyword::MERGE, Keyword::REPLACE];
        let reads = [Keyword::SELECT, Keyword::WITH];
        if !text.begins_with(&changes) && !text.begins_with(&reads) {
            return Err(InvalidSql::NotAnApply);
        }
        if !text
            .lexemes
            .iter()
            .any(|lexeme| lexeme.name().is_some_and(|name| name.eq_ignore_ascii_case(CHUNK)))
        {
            return Err(InvalidSql::NoChunk);
        }
        if let Some(column) = key_set(&text, key, dialect) {
            return Err(InvalidSql::TouchesKey { column });
        }
        let is_query = !text.lexemes.iter().any(|its| changes.iter().any(|keyword| its.is_keyword(*keyword)));
        let end = text.sql.len();
        let with = text.begins_with(&[Keyword::WITH]).then(|| {
            let recursive = text.lexemes.get(1).filter(|next| next.is_keyword(Keyword::RECURSIVE));
            recursive.unwrap_or(&text.lexemes[0]).end
        });
        let rest = text.pieces(with.unwrap_or(0), end);
        Ok(Self {
            parameters: text.typed_parameters(),
            with: with.map(|to| text.pieces(0, to)),
            rest,
            is_query,
            text: text.sql,
        })
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
        names(self.with.iter().flatten().chain(&self.rest))
    }

    /// Returns whether it is a query, such as one that calls functions; its result must be read.
    #[must_use]
    pub fn is_query(&self) -> bool {
        self.is_query
    }

    /// Returns the statement on its own.
    pub fn statement(&self, placeholders: &mut impl Placeholders) -> String {
        let mut sql = String::new();
        write(&mut sql, self.with.as_deref().unwrap_or_default(), placeholders);
        write(&mut sql, &self.rest, placeholders);
        sql
    }

    /// Returns the statement with `chunk` as a common table expression.
    pub fn statement_over(&self, chunk: &str, placeholders: &mut impl Placeholders) -> String {
        let mut sql = String::new();
        match &self.with {
            Some(with) => {
                write(&mut sql, with, placeholders);
                sql.push_str(&format!(" {CHUNK} as materialized ({chunk}),"));
            }
            None => sql.push_str(&format!("with {CHUNK} as materialized ({chunk}) ")),
        }
        write(&mut sql, &self.rest, placeholders);
        sql
    }
}

/// Returns the key column that an UPDATE sets, if there is one. A statement that cannot be parsed is not checked here;
/// at run time, a source whose key does not advance is an error.
fn key_set(text: &Text, key: &[String], dialect: Dialect) -> Option<String> {
    // The parser recurses up to 50 levels, in frames too large for the stack of a thread.
    let statements = stack::large(|| Parser::parse_sql(dialect.parser(), &text.sql)).ok()?;
    let [Statement::Update(update)] = statements.as_slice() else { return None };
    let targets = update.assignments.iter().flat_map(|assignment| match &assignment.target {
        AssignmentTarget::ColumnName(name) => vec![name],
        AssignmentTarget::Tuple(names) => names.iter().collect(),
    });
    let set: Vec<String> = targets.filter_map(last_name).collect();
    key.iter().find(|key| set.iter().any(|name| name.eq_ignore_ascii_case(key))).cloned()
}

fn last_name(name: &ObjectName) -> Option<String> {
    match name.0.last()? {
        ObjectNamePart::Identifier(name) => Some(name.value.clone()),
        ObjectNamePart::Function(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown;

    impl Placeholders for Shown {
        fn parameter(&mut self, name: &str) -> String {
            format!("<{name}>")
        }
        fn cursor(&mut self, _: usize) -> String {
            unreachable!("an apply statement has no cursor")
        }
        fn limit(&mut self) -> String {
            unreachable!("an apply statement has no limit")
        }
    }

    fn parse(sql: &str) -> Result<Apply, InvalidSql> {
        Apply::parse(sql, &["id".to_owned()], Dialect::Postgres)
    }

    #[test]
    fn an_apply_gets_its_chunk_as_a_common_table() {
        let plain = parse("insert into note select :bulk_id, id from chunk").unwrap();
        let over = plain.statement_over("SOURCE", &mut Shown);
        assert_eq!(
            over,
            "with chunk as materialized (SOURCE) insert into note select <bulk_id>, id from chunk"
        );
        let with = parse("with recursive a as (select 1) insert into note select id from chunk, a;").unwrap();
        let over = with.statement_over("SOURCE", &mut Shown);
        assert_eq!(
            over,
            "with recursive chunk as materialized (SOURCE), a as (select 1) insert into note select id from chunk, a"
        );
        assert_eq!(plain.parameters(), ["bulk_id"]);
        assert!(!with.is_query());
        assert!(parse("select pg_notify('x', id::text) from chunk").unwrap().is_query());
    }

    #[test]
    fn a_quoted_name_after_a_colon_is_no_parameter() {
        let slice = "select pg_notify('x', names[1:\"last\"]) from chunk";
        assert_eq!(parse(slice).unwrap().parameters(), [""; 0]);
        let quoted = "select a :[]:text from chunk";
        let quoted = Apply::parse(quoted, &["id".to_owned()], Dialect::Sqlite).unwrap();
        assert_eq!(quoted.parameters(), ["text"]);
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let nested = format!("{}1{}", "(".repeat(1000), ")".repeat(1000));
        assert!(parse(&format!("insert into note select {nested} from chunk")).is_ok());
        assert!(parse(&format!("update note set a = {nested} from chunk")).is_ok());
    }

    #[test]
    fn what_an_apply_may_not_do_is_named() {
        let error = |sql: &str| parse(sql).unwrap_err();
        assert_eq!(error("insert into note select 1"), InvalidSql::NoChunk);
        assert_eq!(error("truncate chunk"), InvalidSql::NotAnApply);
        assert!(matches!(error("delete from note where id > :cursor"), InvalidSql::Misplaced { .. }));
        let moved = "update member set seen = true, id = id + 1 from chunk where member.id = chunk.id";
        assert_eq!(error(moved), InvalidSql::TouchesKey { column: "id".to_owned() });
        assert!(parse("update member set seen = true from chunk where member.id = chunk.id").is_ok());
    }
}
