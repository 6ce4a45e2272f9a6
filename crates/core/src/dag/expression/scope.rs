//! Variables and step limit for the evaluation of expressions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use cel::common::ast::{CallExpr, Expr, LiteralValue};
use cel::{Context, Env, ExecutionError, IdedExpr, Value as Cel};

use super::super::json::{map, to_cel, to_json, weight, weight_of_json};
use super::EvaluationError;
use super::member::Member;
use super::values::{Item, TaskValue, Values};
use crate::json::Exact;

/// The function that charges values by their size; an expression cannot call it.
pub(super) const PAY: &str = "@pay";
/// The function that ends a loop when no steps are left: within `all` and `exists`, an error of one item does not end the loop.
pub(super) const MORE: &str = "@more";
/// The maximum length of an error message, in characters.
const WHY_CHARS_MAX: usize = 200;

static FUNCTIONS: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// Variables in the form that CEL needs, and the number of steps that the expressions of one task have left.
pub struct Scope<'v> {
    values: Values<'v>,
    context: Context<'static, 'static>,
    steps_left: Arc<AtomicU64>,
}

impl<'v> Scope<'v> {
    /// Creates a scope for expressions that take at most this many steps together: [`STEPS_MAX`](super::STEPS_MAX), or fewer for a first
    /// attempt within a transaction.
    #[must_use]
    pub fn new(values: &Values<'v>, steps: u64) -> Self {
        let steps_left = Arc::new(AtomicU64::new(steps));
        let mut context = Context::with_env(Arc::clone(&FUNCTIONS));
        if values.event.is_none() {
            context.add_variable_from_value("input", to_cel(values.input.marked()));
            context.add_variable_from_value("tick", to_cel(values.tick.marked()));
        }
        let state = |task: &TaskValue<'_>| Cel::String(Arc::new(task.state.as_str().to_owned()));
        let task = |task: &TaskValue<'_>| {
            map([("output", to_cel(task.output.marked())), ("state", state(task))].into_iter())
        };
        let tasks = map(values.tasks.iter().map(|value| (value.key, task(value))));
        context.add_variable_from_value("tasks", tasks);
        if let Some(Item { value, index }) = values.item {
            context.add_variable_from_value("item", to_cel(value.marked()));
            context.add_variable_from_value("index", Cel::Int(index.into()));
        }
        if let Some(event) = values.event {
            context.add_variable_from_value("event", to_cel(event.marked()));
        }
        let left = Arc::clone(&steps_left);
        // Fails only for a name that the library already defines; none of its names begins like this one.
        let _ = context.add_function(PAY, move |value: Cel| {
            let steps = weight(&value, left.load(Ordering::Relaxed));
            pay(&left, value, steps)
        });
        let left = Arc::clone(&steps_left);
        let _ = context.add_function(MORE, move || left.load(Ordering::Relaxed) > 0);
        Self { values: *values, context, steps_left }
    }

    /// Returns whether the expressions have used all steps.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps_left.load(Ordering::Relaxed) == 0
    }

    /// Returns the value of a tree as JSON, in which shared parts are copied.
    pub(super) fn resolve_json(&self, tree: &IdedExpr) -> Result<Exact, EvaluationError> {
        let value = self.resolve(tree)?;
        self.charge(|left| weight(&value, left))?;
        to_json(&value).map(Exact::of_marked).map_err(|given| EvaluationError::NotJson { given })
    }

    /// Returns a copy of a member; `None` if it does not exist.
    pub(super) fn find(&self, member: &Member) -> Option<Result<Exact, EvaluationError>> {
        let value = member.find(&self.values)?;
        let charged = self.charge(|left| weight_of_json(value, left));
        Some(charged.map(|()| Exact::of_marked(value.clone())))
    }

    fn charge(&self, weight: impl FnOnce(u64) -> u64) -> Result<(), EvaluationError> {
        let steps = weight(self.steps_left.load(Ordering::Relaxed));
        if spend(&self.steps_left, steps) { Ok(()) } else { Err(EvaluationError::TooManySteps) }
    }

    pub(super) fn resolve(&self, tree: &IdedExpr) -> Result<Cel, EvaluationError> {
        let value = self.context.resolve(tree);
        // Checked first, because `true || …` hides an error.
        if self.is_exhausted() {
            return Err(EvaluationError::TooManySteps);
        }
        value.map_err(|error| EvaluationError::Failed {
            why: error.to_string().chars().take(WHY_CHARS_MAX).collect(),
        })
    }
}

/// Returns whether a function or method with this name exists. CEL reports an unknown name before it checks the arguments.
pub(super) fn knows(name: &str, is_method: bool) -> bool {
    let null = || IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::Null) };
    let target = is_method.then(|| Box::new(null()));
    let call = CallExpr { func_name: name.to_owned(), target, args: Vec::new() };
    let answer =
        Context::with_env(Arc::clone(&FUNCTIONS)).resolve(&IdedExpr { id: 0, expr: Expr::Call(call) });
    !matches!(answer, Err(ExecutionError::UndeclaredReference(_)))
}

impl std::fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("steps_left", &self.steps_left).finish_non_exhaustive()
    }
}

fn pay(left: &AtomicU64, value: Cel, steps: u64) -> Result<Cel, ExecutionError> {
    if spend(left, steps) { Ok(value) } else { Err(ExecutionError::function_error("list", "too many steps")) }
}

/// Subtracts steps; returns whether any are left.
fn spend(left: &AtomicU64, steps: u64) -> bool {
    let after = left.load(Ordering::Relaxed).saturating_sub(steps);
    left.store(after, Ordering::Relaxed);
    after > 0
}
