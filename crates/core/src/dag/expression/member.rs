//! Expressions that only name a member of a variable. Their value is handed on as it is, without a conversion to CEL and back, in which
//! numbers would lose digits.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue, operators};
use serde_json::Value;

use super::values::Values;

/// A member of a variable, such as `input.order.lines[0]` or `tasks.load.output`.
#[derive(Clone, PartialEq)]
pub(super) struct Member {
    variable: String,
    steps: Vec<Step>,
}

#[derive(Clone, PartialEq)]
enum Step {
    Name(String),
    Index(usize),
}

impl Member {
    /// Returns the member that an expression names; `None` if it does anything else.
    pub(super) fn of(tree: &IdedExpr) -> Option<Self> {
        match &tree.expr {
            Expr::Ident(variable) => Some(Self { variable: variable.clone(), steps: Vec::new() }),
            Expr::Select(select) if !select.test => {
                Self::of(&select.operand)?.then(Step::Name(select.field.clone()))
            }
            Expr::Call(CallExpr { func_name, args, .. }) if func_name == operators::INDEX => {
                match &args[..] {
                    [operand, IdedExpr { expr: Expr::Literal(literal), .. }] => {
                        Self::of(operand)?.then(match literal {
                            LiteralValue::String(name) => Step::Name(name.inner().to_owned()),
                            LiteralValue::Int(index) => Step::Index(usize::try_from(*index.inner()).ok()?),
                            _ => return None,
                        })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn then(mut self, step: Step) -> Option<Self> {
        self.steps.push(step);
        Some(self)
    }

    /// Returns the value; `None` if it does not exist.
    pub(super) fn find<'v>(&self, values: &Values<'v>) -> Option<&'v Value> {
        let (root, steps) = match (self.variable.as_str(), &self.steps[..]) {
            ("input", steps) => (values.input, steps),
            ("tick", steps) => (values.tick, steps),
            ("event", steps) => (values.event?, steps),
            ("item", steps) => (values.item?.value, steps),
            ("tasks", [Step::Name(key), Step::Name(output), steps @ ..]) if output == "output" => {
                (values.tasks.iter().find(|task| task.key == key)?.output, steps)
            }
            _ => return None,
        };
        steps.iter().try_fold(root.marked(), |value, step| match step {
            Step::Name(name) => value.as_object()?.get(name),
            Step::Index(index) => value.as_array()?.get(*index),
        })
    }
}
