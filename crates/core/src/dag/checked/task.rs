//! Compiled expressions of one task.

use super::super::definition::Task;
use super::super::expression::{Expression, InvalidExpression, Reads};
use super::super::fault::Fault;
use super::super::template::{InvalidTemplate, Template};
use super::super::wait::InvalidWait;

/// The compiled expressions of a task; everything else is in its definition.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedTask {
    /// Its condition.
    pub when: Option<Expression>,
    /// The list whose items it processes.
    pub each: Option<Expression>,
    /// Its payload, or the time until which it waits; `None` when it has no expressions in the definition.
    pub payload: Option<Template>,
}

impl CheckedTask {
    /// Returns whether it has no expressions.
    pub(super) const fn is_plain(&self) -> bool {
        self.when.is_none() && self.each.is_none() && self.payload.is_none()
    }

    /// Returns everything its expressions read, such as the predecessors whose outputs it needs.
    #[must_use]
    pub fn reads(&self) -> Reads {
        let mut all = self.payload.as_ref().map(Template::reads).unwrap_or_default();
        for reads in self.when.iter().chain(&self.each).map(Expression::reads) {
            all.tasks.extend(reads.tasks.iter().cloned());
            all.all_tasks |= reads.all_tasks;
            all.input |= reads.input;
        }
        all
    }

    /// Compiles the expressions of a task; `None` when there is a fault.
    pub(super) fn compile(key: &str, task: &Task, faults: &mut Vec<Fault>) -> Option<Self> {
        let before = faults.len();
        let mut compile = |place: &'static str, text: &Option<String>| {
            let compiled = text.as_deref().map(Expression::compile).transpose();
            compiled.unwrap_or_else(|invalid: InvalidExpression| {
                faults.push(Fault::Expression { task: key.to_owned(), place, invalid });
                None
            })
        };
        let (when, each) = (compile("when", &task.when), compile("each", &task.each));
        let mut invalid = Vec::new();
        let payload = Template::compile_all(&task.templated(), &mut invalid);
        faults.extend(invalid.into_iter().map(|invalid| template_fault(key, task, invalid)));
        let payload = (!payload.is_plain()).then_some(payload);
        let compiled = Self { when, each, payload };
        compiled.check_reads(key, task, faults);
        (faults.len() == before).then_some(compiled)
    }

    fn check_reads(&self, key: &str, task: &Task, faults: &mut Vec<Fault>) {
        let mut check = |place: &'static str, reads: &Reads, has_item: bool| {
            for read in reads.tasks.iter().filter(|read| !task.after.contains(read)) {
                faults.push(Fault::NotAPredecessor { task: key.to_owned(), place, read: read.clone() });
            }
            if reads.item && !has_item {
                faults.push(Fault::NoItem { task: key.to_owned(), place });
            }
        };
        self.when.iter().for_each(|when| check("when", when.reads(), false));
        self.each.iter().for_each(|each| check("each", each.reads(), false));
        let place = if task.wait.is_some() { "until" } else { "payload" };
        self.payload.iter().for_each(|payload| check(place, &payload.reads(), task.each.is_some()));
    }
}

fn template_fault(key: &str, task: &Task, invalid: InvalidTemplate) -> Fault {
    let key = key.to_owned();
    if task.wait.is_none() {
        return Fault::Template { task: key, invalid };
    }
    let why = invalid.to_string().replacen("the payload: ", "", 1);
    Fault::Wait { task: key, invalid: InvalidWait::Until { why } }
}
