//! Tokens of SQL text with their byte positions, to find parameters and clauses.

use sqlparser::dialect::{PostgreSqlDialect, SQLiteDialect};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, Tokenizer, Word};

use super::InvalidSql;
use crate::bulk::staged::ColumnType;

/// The SQL dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
}

impl Dialect {
    pub(super) fn parser(self) -> &'static dyn sqlparser::dialect::Dialect {
        match self {
            Self::Postgres => &PostgreSqlDialect {},
            Self::Sqlite => &SQLiteDialect {},
        }
    }
}

/// A token other than whitespace and comments, and its byte range.
#[derive(Clone, Debug)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Lexeme {
    pub(super) fn is_keyword(&self, keyword: Keyword) -> bool {
        matches!(&self.token, Token::Word(word) if word.quote_style.is_none() && word.keyword == keyword)
    }

    /// Returns the name, if the lexeme is a word.
    pub(super) fn name(&self) -> Option<&str> {
        if let Token::Word(word) = &self.token { Some(&word.value) } else { None }
    }

    /// Returns whether both have the same text, ignoring case.
    pub(super) fn says_as(&self, other: &Self) -> bool {
        self.token.to_string().eq_ignore_ascii_case(&other.token.to_string())
    }
}

/// A parameter of the form `:name`.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// The index of the lexeme that is its colon.
    pub(super) at: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    /// The type to which the statement casts it.
    pub(super) cast: Option<ColumnType>,
}

/// The parameters that are a part of each chunk, not of a run.
pub(super) const PARTS: [&str; 2] = ["cursor", "limit"];

/// Names of parameters, and the types of their casts.
pub(super) type TypedParameters = Vec<(String, Option<ColumnType>)>;

/// One statement, without the semicolon and trailing comments.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) sql: String,
    pub(super) lexemes: Vec<Lexeme>,
    pub(super) parameters: Vec<Parameter>,
}

impl Text {
    pub(super) fn read(sql: &str, dialect: Dialect) -> Result<Self, InvalidSql> {
        let mut lexemes = lexemes(sql, dialect)?;
        while lexemes.last().is_some_and(|last| last.token == Token::SemiColon) {
            lexemes.pop();
        }
        if lexemes.iter().any(|lexeme| lexeme.token == Token::SemiColon) {
            return Err(InvalidSql::SeveralStatements);
        }
        if let Some(found) = lexemes.iter().find(|lexeme| matches!(lexeme.token, Token::Placeholder(_))) {
            return Err(InvalidSql::Positional { found: found.token.to_string() });
        }
        let end = lexemes.last().ok_or(InvalidSql::Empty)?.end;
        let parameters = parameters(&lexemes);
        Ok(Self { sql: sql[..end].to_owned(), lexemes, parameters })
    }

    /// Returns its parameters with the types of their casts, except those for the cursor and the number of rows.
    pub(super) fn typed_parameters(&self) -> TypedParameters {
        let given = self.parameters.iter().filter(|its| !PARTS.contains(&its.name.as_str()));
        given.map(|its| (its.name.clone(), its.cast)).collect()
    }

    /// Returns whether it begins with one of these keywords.
    pub(super) fn begins_with(&self, keywords: &[Keyword]) -> bool {
        self.lexemes.first().is_some_and(|first| keywords.iter().any(|keyword| first.is_keyword(*keyword)))
    }

    /// Returns the text between two byte positions, split at its parameters.
    pub(super) fn pieces(&self, from: usize, to: usize) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut at = from;
        for parameter in self.parameters.iter().filter(|its| its.start >= from && its.end <= to) {
            pieces.push(Piece::Text(self.sql[at..parameter.start].to_owned()));
            pieces.push(Piece::Parameter(parameter.name.clone()));
            at = parameter.end;
        }
        pieces.push(Piece::Text(self.sql[at..to].to_owned()));
        pieces
    }
}

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Parameter(String),
}

fn lexemes(sql: &str, dialect: Dialect) -> Result<Vec<Lexeme>, InvalidSql> {
    let tokens = Tokenizer::new(dialect.parser(), sql)
        .with_unescape(false)
        .tokenize_with_location()
        .map_err(|error| InvalidSql::Unreadable { why: error.to_string() })?;
    let mut places = Places::new(sql);
    let mut lexemes: Vec<Lexeme> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let (start, end) = (places.byte(token.span.start), places.byte(token.span.end));
        if !matches!(token.token, Token::Whitespace(_)) {
            lexemes.push(Lexeme { token: token.token, start, end });
        }
    }
    Ok(lexemes)
}

/// Converts lines and columns to byte positions. The positions must be ascending.
struct Places<'a> {
    sql: &'a str,
    byte: usize,
    line: u64,
    column: u64,
}

impl<'a> Places<'a> {
    fn new(sql: &'a str) -> Self {
        Self { sql, byte: 0, line: 1, column: 1 }
    }

    fn byte(&mut self, place: Location) -> usize {
        if (place.line, place.column) < (self.line, self.column) {
            (self.byte, self.line, self.column) = (0, 1, 1);
        }
        for char in self.sql[self.byte..].chars() {
            if (self.line, self.column) >= (place.line, place.column) {
                break;
            }
            self.byte += char.len_utf8();
            if char == '\n' {
                (self.line, self.column) = (self.line + 1, 1);
            } else {
                self.column += 1;
            }
        }
        self.byte
    }
}

/// Returns every colon that is directly followed by a name.
fn parameters(lexemes: &[Lexeme]) -> Vec<Parameter> {
    let pairs = lexemes.windows(2).enumerate();
    let named = pairs.filter_map(|(at, pair)| {
        let [colon, word] = pair else { return None };
        // A quoted name after a colon is the end of an array slice, or SQLite's way to quote.
        let Token::Word(Word { value: name, quote_style: None, .. }) = &word.token else { return None };
        (colon.token == Token::Colon && colon.end == word.start).then(|| Parameter {
            name: name.to_owned(),
            at,
            start: colon.start,
            end: word.end,
            cast: cast(lexemes, at),
        })
    });
    named.collect()
}

/// Returns the type to which the parameter whose colon is at this index is cast: `:name::type` or `cast(:name as type)`.
fn cast(lexemes: &[Lexeme], colon: usize) -> Option<ColumnType> {
    let after = lexemes.get(colon + 2)?;
    let before = lexemes[..colon].last_chunk::<2>();
    let in_call = before.is_some_and(|[call, open]| {
        call.is_keyword(Keyword::CAST) && open.token == Token::LParen && after.is_keyword(Keyword::AS)
    });
    if after.token != Token::DoubleColon && !in_call {
        return None;
    }
    let name = lexemes.get(colon + 3)?.name()?.to_ascii_lowercase();
    let is_list = lexemes.get(colon + 4).is_some_and(|next| next.token == Token::LBracket);
    Some(if is_list { ColumnType::Text } else { type_named(&name) })
}

/// Returns the type with this name in SQL. Times, and types that are not known here, are written as text.
fn type_named(name: &str) -> ColumnType {
    match name {
        "smallint" | "int2" | "int" | "integer" | "int4" | "bigint" | "int8" => ColumnType::Integer,
        "numeric" | "decimal" | "real" | "float4" | "float" | "double" | "float8" => ColumnType::Number,
        "bool" | "boolean" => ColumnType::Boolean,
        "json" | "jsonb" => ColumnType::Json,
        _ => ColumnType::Text,
    }
}
