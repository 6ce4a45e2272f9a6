//! Comparison of a source's key with the cursor.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use super::InvalidSql;
use super::tail::{Tail, split};
use super::text::{Lexeme, Text};

/// Returns the byte range of `> :cursor`.
pub(super) fn compared(text: &Text, tail: &Tail<'_>) -> Result<(usize, usize), InvalidSql> {
    let mut cursors = text.parameters.iter().filter(|its| its.name == "cursor");
    let cursor = cursors.next().ok_or_else(|| InvalidSql::NoCursor { left: tail.left(text) })?;
    if cursors.next().is_some() {
        return Err(InvalidSql::CursorTwice);
    }
    if text.parameters.iter().filter(|its| its.name == "limit").count() > 1 {
        return Err(InvalidSql::Misplaced { name: "limit".to_owned(), instead: "write it once, at the end" });
    }
    let wrong = || InvalidSql::CursorNotCompared { left: tail.left(text) };
    let before = &text.lexemes[..cursor.at];
    let (operator, before) = before.split_last().ok_or_else(wrong)?;
    match operator.token {
        Token::Gt => {}
        Token::Lt => return Err(InvalidSql::Descending { column: tail.left(text) }),
        _ => return Err(wrong()),
    }
    let begins = left_side(before, tail).ok_or_else(wrong)?;
    if always_holds(&text.lexemes, begins, cursor.at + 2) {
        Ok((operator.start, cursor.end))
    } else {
        Err(wrong())
    }
}

/// Returns whether the condition between these lexemes applies to every row of its query: it is not part of a larger
/// expression, and no OR is combined with it.
fn always_holds(lexemes: &[Lexeme], begins: usize, ends: usize) -> bool {
    let is_one = |its: &Lexeme, keywords: &[Keyword]| keywords.iter().any(|keyword| its.is_keyword(*keyword));
    let joined = lexemes[..begins].last().is_some_and(|before| {
        before.token == Token::LParen || is_one(before, &[Keyword::AND, Keyword::WHERE, Keyword::ON])
    });
    let alone = lexemes.get(ends).is_none_or(|next| {
        next.token == Token::RParen || is_one(next, &[Keyword::AND, Keyword::ORDER, Keyword::GROUP])
    });
    let (before, open) = level(lexemes[..begins].iter().rev(), &Token::RParen, &Token::LParen);
    let (after, close) = level(lexemes[ends..].iter(), &Token::LParen, &Token::RParen);
    let clause = before.iter().take_while(|its| !is_one(its, &[Keyword::WHERE, Keyword::ON]));
    if !joined || !alone || clause.chain(&after).any(|its| its.is_keyword(Keyword::OR)) {
        return false;
    }
    match (open, close) {
        // In parentheses: the context of the parentheses decides.
        (Some(open), Some(close)) if !before.iter().any(|its| its.is_keyword(Keyword::SELECT)) => {
            always_holds(lexemes, begins - 1 - open, ends + close + 1)
        }
        _ => true,
    }
}

/// Returns the lexemes up to the end of the enclosing parentheses, without the content of nested ones, and the offset of that end.
fn level<'a>(
    lexemes: impl Iterator<Item = &'a Lexeme>,
    opens: &Token,
    closes: &Token,
) -> (Vec<&'a Lexeme>, Option<usize>) {
    let (mut found, mut depth) = (Vec::new(), 0_usize);
    for (at, lexeme) in lexemes.enumerate() {
        if lexeme.token == *opens {
            depth += 1;
        } else if lexeme.token != *closes {
            if depth == 0 {
                found.push(lexeme);
            }
        } else if depth == 0 {
            return (found, Some(at));
        } else {
            depth -= 1;
        }
    }
    (found, None)
}

/// Returns where the left side begins, when the lexemes end with the columns of ORDER BY.
fn left_side(before: &[Lexeme], tail: &Tail<'_>) -> Option<usize> {
    let same = |found: &[Lexeme], column: &[Lexeme]| {
        found.len() == column.len() && found.iter().zip(column).all(|(a, b)| a.says_as(b))
    };
    if let [column] = tail.columns.as_slice() {
        let at = before.len().checked_sub(column.len())?;
        return same(&before[at..], column).then_some(at);
    }
    let lexemes: usize = tail.columns.iter().map(|column| column.len() + 1).sum::<usize>() + 1;
    let at = before.len().checked_sub(lexemes)?;
    let [open, columns @ .., close] = &before[at..] else { return None };
    let row = open.token == Token::LParen && close.token == Token::RParen;
    let columns = split(columns);
    let all = columns.len() == tail.columns.len()
        && columns.iter().zip(&tail.columns).all(|(found, column)| same(found, column));
    (row && all).then_some(at)
}
