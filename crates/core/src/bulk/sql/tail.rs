//! The end of a source query, which orders the targets by their key.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use super::InvalidSql;
use super::text::{Lexeme, Text};
use crate::text::shorten;

/// The end of a source query: `order by … limit :limit`.
pub(super) struct Tail<'a> {
    /// The index of the lexeme ORDER.
    pub(super) at: usize,
    pub(super) columns: Vec<&'a [Lexeme]>,
}

impl<'a> Tail<'a> {
    pub(super) fn find(text: &'a Text, key: &[String]) -> Result<Self, InvalidSql> {
        let missing = || InvalidSql::NoOrder { key: key.join(", ") };
        let [.., limit, colon, name] = text.lexemes.as_slice() else { return Err(missing()) };
        let bound = limit.is_keyword(Keyword::LIMIT) && colon.token == Token::Colon;
        if !bound || name.name().is_none_or(|name| name != "limit") {
            return Err(missing());
        }
        let end = text.lexemes.len() - 3;
        let at = order_by(&text.lexemes[..end]).ok_or_else(missing)?;
        let columns = split(&text.lexemes[at + 2..end]);
        let columns =
            columns.into_iter().map(|column| upward(text, column)).collect::<Result<Vec<_>, _>>()?;
        let tail = Self { at, columns };
        if tail.columns.len() != key.len() || !tail.ends_as(key) {
            let order: Vec<String> = tail.columns.iter().map(|column| shown(text, column)).collect();
            return Err(InvalidSql::OrderIsNotKey { order: order.join(", "), key: key.join(", ") });
        }
        Ok(tail)
    }

    /// Returns whether the last name in each column is that of the key column.
    fn ends_as(&self, key: &[String]) -> bool {
        self.columns.iter().zip(key).all(|(column, key)| {
            column.last().and_then(Lexeme::name).is_some_and(|name| name.eq_ignore_ascii_case(key))
        })
    }

    /// Returns the text of the left side of the comparison with the cursor.
    pub(super) fn left(&self, text: &Text) -> String {
        let columns: Vec<String> = self.columns.iter().map(|column| shown(text, column)).collect();
        if columns.len() == 1 { columns.concat() } else { format!("({})", columns.join(", ")) }
    }
}

/// Returns the index of the last ORDER BY outside of parentheses.
fn order_by(lexemes: &[Lexeme]) -> Option<usize> {
    let mut depth = 0_i32;
    for at in (0..lexemes.len()).rev() {
        match lexemes[at].token {
            Token::RParen => depth += 1,
            Token::LParen => depth -= 1,
            _ => {}
        }
        let by = lexemes.get(at + 1).is_some_and(|next| next.is_keyword(Keyword::BY));
        if depth == 0 && by && lexemes[at].is_keyword(Keyword::ORDER) {
            return Some(at);
        }
    }
    None
}

/// Splits at the commas outside of parentheses.
pub(super) fn split(lexemes: &[Lexeme]) -> Vec<&[Lexeme]> {
    let mut depth = 0_i32;
    lexemes
        .split(|lexeme| {
            match lexeme.token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            depth == 0 && lexeme.token == Token::Comma
        })
        .collect()
}

/// Returns the column without ASC; descending order is an error.
fn upward<'a>(text: &Text, column: &'a [Lexeme]) -> Result<&'a [Lexeme], InvalidSql> {
    if let Some(at) = column.iter().position(|lexeme| lexeme.is_keyword(Keyword::NULLS)) {
        return Err(InvalidSql::Nulls { column: shown(text, &column[..at]) });
    }
    match column {
        [column @ .., last] if last.is_keyword(Keyword::DESC) => {
            Err(InvalidSql::Descending { column: shown(text, column) })
        }
        [column @ .., last] if last.is_keyword(Keyword::ASC) => Ok(column),
        column => Ok(column),
    }
}

/// Returns the text of lexemes for a message: one bounded line.
fn shown(text: &Text, lexemes: &[Lexeme]) -> String {
    const BYTES_MAX: usize = 200;
    shorten(words(text, lexemes).split_whitespace().collect::<Vec<_>>().join(" "), BYTES_MAX)
}

pub(super) fn words(text: &Text, lexemes: &[Lexeme]) -> String {
    match lexemes {
        [] => String::new(),
        [first, ..] => text.sql[first.start..lexemes[lexemes.len() - 1].end].to_owned(),
    }
}
