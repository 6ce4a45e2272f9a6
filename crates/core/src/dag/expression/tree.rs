//! Parsing of expressions into syntax trees, and instrumentation of the trees with step counting.

use std::mem;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use cel::parser::Parser;

use super::member::Member;
use super::scope::{MORE, PAY, knows};
use super::{EVENT_MEMBERS, InvalidExpression, LINKS_MAX, NESTING_MAX, Over, Reads, TEXT_BYTES_MAX};

const KNOWN: &str = "input, tick, tasks, and for each item also item and index";
const KNOWN_OF_EVENT: &str = "event.id, event.type, event.aggregate_type, event.aggregate_id, event.sequence, event.payload, event.headers and event.emitted_at";
/// Names of types, which are values in expressions such as `type(x) == int`.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];
/// Functions and operators whose cost does not depend on the size of their operands.
const FREE: [&str; 7] = [
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::CONDITIONAL,
    operators::NOT_STRICTLY_FALSE,
    operators::INDEX,
    PAY,
];

pub(super) fn compile(
    text: &str,
    over: Over,
) -> Result<(IdedExpr, Reads, Option<Member>), InvalidExpression> {
    if text.trim().is_empty() {
        return Err(InvalidExpression::Empty);
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(InvalidExpression::TooLong { bytes: text.len() });
    }
    // Checked before parsing, because the parser recurses.
    if nesting(text) > NESTING_MAX {
        return Err(InvalidExpression::TooDeep);
    }
    let links = text.bytes().filter(|byte| b"+-*/%<>=!?.[({".contains(byte)).count();
    if links > LINKS_MAX {
        return Err(InvalidExpression::TooComplex { links });
    }
    let mut tree = Parser::new().parse(text).map_err(|errors| {
        let first = errors.errors.into_iter().next();
        let (line, column, why) =
            first.map_or((0, 0, String::new()), |error| (error.pos.0, error.pos.1, error.msg));
        let place = |at: isize| usize::try_from(at).unwrap_or(0).max(1);
        InvalidExpression::Syntax { line: place(line), column: place(column), why }
    })?;
    let mut reads = Reads::default();
    read(&tree, over, &mut Vec::new(), &mut reads)?;
    let member = Member::of(&tree);
    charge_all(&mut tree);
    Ok((tree, reads, member))
}

/// Returns the nesting depth of brackets. Brackets in strings count too: it is an upper bound.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Records the variables that a tree reads; `bound` contains the variables of the enclosing loops.
fn read<'t>(
    tree: &'t IdedExpr,
    over: Over,
    bound: &mut Vec<&'t str>,
    reads: &mut Reads,
) -> Result<(), InvalidExpression> {
    if over == Over::Event {
        read_event(tree, bound)?;
    } else if let Some(key) = named_task(tree).filter(|_| !bound.contains(&"tasks")) {
        reads.tasks.insert(key.to_owned());
        return Ok(());
    }
    match &tree.expr {
        Expr::Ident(name) if bound.contains(&name.as_str()) || name.starts_with('@') => {}
        Expr::Ident(name) if over == Over::Event && name == "event" => {}
        Expr::Ident(name) if TYPES.contains(&name.as_str()) => {}
        Expr::Ident(name) if over == Over::Event => {
            return Err(InvalidExpression::UnknownVariable { name: name.clone(), known: KNOWN_OF_EVENT });
        }
        Expr::Ident(name) => match name.as_str() {
            "input" => reads.input = true,
            "tick" => {}
            "tasks" => reads.all_tasks = true,
            "item" | "index" => reads.item = true,
            name => {
                return Err(InvalidExpression::UnknownVariable { name: name.to_owned(), known: KNOWN });
            }
        },
        Expr::Comprehension(every) => {
            read(&every.iter_range, over, bound, reads)?;
            let outside = bound.len();
            bound.push(&every.iter_var);
            bound.extend(every.iter_var2.as_deref());
            for part in [&every.accu_init, &every.loop_cond, &every.loop_step, &every.result] {
                read(part, over, bound, reads)?;
            }
            bound.truncate(outside);
        }
        Expr::Call(CallExpr { func_name, target, .. })
            if func_name.starts_with(char::is_alphabetic) && !knows(func_name, target.is_some()) =>
        {
            return Err(InvalidExpression::UnknownFunction { name: func_name.clone() });
        }
        other => children(other).into_iter().try_for_each(|child| read(child, over, bound, reads))?,
    }
    Ok(())
}

/// Checks that a member of `event` that an expression names exists.
fn read_event(tree: &IdedExpr, bound: &[&str]) -> Result<(), InvalidExpression> {
    match &tree.expr {
        Expr::Select(select)
            if matches!(&select.operand.expr, Expr::Ident(name) if name == "event")
                && !bound.contains(&"event")
                && !EVENT_MEMBERS.contains(&select.field.as_str()) =>
        {
            let name = format!("event.{}", select.field);
            Err(InvalidExpression::UnknownVariable { name, known: KNOWN_OF_EVENT })
        }
        _ => Ok(()),
    }
}

/// Returns the key in `tasks.key` or `tasks["key"]`.
fn named_task(tree: &IdedExpr) -> Option<&str> {
    let is_tasks = |tree: &IdedExpr| matches!(&tree.expr, Expr::Ident(name) if name == "tasks");
    match &tree.expr {
        Expr::Select(select) if is_tasks(&select.operand) => Some(&select.field),
        Expr::Call(CallExpr { func_name, args, .. }) if func_name == operators::INDEX => match &args[..] {
            [tasks, IdedExpr { expr: Expr::Literal(LiteralValue::String(key)), .. }] if is_tasks(tasks) => {
                Some(key.inner())
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the child trees of an expression that is not a loop.
fn children(expr: &Expr) -> Vec<&IdedExpr> {
    match expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| parts(&entry.expr)).collect(),
        Expr::Struct(object) => object.entries.iter().flat_map(|entry| parts(&entry.expr)).collect(),
        Expr::Comprehension(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}

/// Adds a charge for every value that is iterated, joined, compared or passed to a function, and for every element of a list or map
/// literal: CEL copies them, and a loop can do so any number of times.
fn charge_all(tree: &mut IdedExpr) {
    match &mut tree.expr {
        Expr::Call(call) => {
            call.target.as_deref_mut().into_iter().chain(&mut call.args).for_each(charge_all);
            if !FREE.contains(&call.func_name.as_str()) {
                call.target.as_deref_mut().into_iter().chain(&mut call.args).for_each(charge);
            }
        }
        Expr::Comprehension(every) => charge_loop(every),
        Expr::Select(select) => charge_all(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(|element| {
            charge_all(element);
            wrap(element, PAY);
        }),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| charge_entry(&mut entry.expr)),
        Expr::Struct(object) => object.entries.iter_mut().for_each(|entry| charge_entry(&mut entry.expr)),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

/// Charges a loop for the list it iterates, and at least one step per item, so that it ends when no steps are left.
fn charge_loop(every: &mut ComprehensionExpr) {
    let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } = every;
    [&mut *iter_range, accu_init, &mut *loop_cond, &mut *loop_step, result].into_iter().for_each(charge_all);
    charge(iter_range);
    // The condition that decides whether `filter` and `exists_one` include an item.
    if let Expr::Call(CallExpr { func_name, args, .. }) = &mut loop_step.expr
        && func_name == operators::CONDITIONAL
        && let Some(condition) = args.first_mut()
    {
        wrap(condition, PAY);
    }
    // `all` and `exists` check before each item whether they continue. CEL recognizes the other loops by a condition that is a literal;
    // with any other condition it would copy their accumulated result for each item.
    if !matches!(loop_cond.expr, Expr::Literal(_)) {
        let more = IdedExpr { id: loop_cond.id, expr: call(MORE, Vec::new()) };
        loop_cond.expr = call(operators::LOGICAL_AND, vec![more, mem::take(loop_cond)]);
    }
}

fn charge_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::MapEntry(entry) => {
            [&mut entry.key, &mut entry.value].into_iter().for_each(charge_all);
            wrap(&mut entry.value, PAY);
        }
        EntryExpr::StructField(field) => charge_all(&mut field.value),
    }
}

fn charge(tree: &mut IdedExpr) {
    let free = match &tree.expr {
        // Its elements are already charged. CEL recognizes the accumulator of a loop by this shape.
        Expr::List(_) => true,
        // The accumulator of a loop is charged item by item. CEL recognizes it by its shape and does not copy it.
        Expr::Ident(name) => name.starts_with('@'),
        _ => false,
    };
    if !free {
        wrap(tree, PAY);
    }
}

/// Replaces a tree by a call of a function with the value of the tree.
fn wrap(tree: &mut IdedExpr, function: &str) {
    let (id, value) = (tree.id, mem::take(tree));
    *tree = IdedExpr { id, expr: call(function, vec![value]) };
}

fn call(function: &str, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args })
}
