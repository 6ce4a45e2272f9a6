//! Conditions on events, as filters of subscriptions.

use super::variable;
use crate::dag::expression::{EVENT_STEPS_MAX, Expression, InvalidExpression, Over, Scope, Values};
use crate::event::Event;

/// A condition that an event must meet, as a CEL expression over `event`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition(Expression);

impl Condition {
    /// Compiles a condition.
    ///
    /// # Errors
    /// [`InvalidExpression`] with the reason; for a syntax error also with the location.
    pub fn compile(text: &str) -> Result<Self, InvalidExpression> {
        Expression::compile_over(text, Over::Event).map(Self)
    }

    /// Returns whether an event meets it.
    ///
    /// # Errors
    /// The reason, if the condition cannot be evaluated for this event.
    pub fn holds(&self, event: &Event) -> Result<bool, String> {
        let refuse = |why: String| format!("the filter cannot be evaluated: {why}");
        let event = variable(event).map_err(|e| refuse(e.to_string()))?;
        let scope = Scope::new(&Values::of_event(&event), EVENT_STEPS_MAX);
        self.0.holds(&scope).map_err(|e| refuse(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::template::tests::event;
    use super::*;

    #[test]
    fn a_condition_reads_the_event_and_its_payload() {
        let holds = |text: &str| Condition::compile(text).unwrap().holds(&event(r#"{"total": 120}"#));
        assert_eq!(holds("event.type == 'order.placed' && event.payload.total > 100"), Ok(true));
        assert_eq!(holds("event.payload.total > 200"), Ok(false));
        assert_eq!(holds("has(event.payload.country) && event.payload.country == 'DE'"), Ok(false));
        let missing = holds("event.payload.country == 'DE'").unwrap_err();
        assert!(missing.starts_with("the filter cannot be evaluated: "), "{missing}");
        let number = holds("event.payload.total").unwrap_err();
        assert!(number.ends_with("it must return true or false"), "{number}");
    }

    #[test]
    fn a_condition_knows_only_the_event_and_its_members() {
        let fault = |text: &str| Condition::compile(text).unwrap_err().to_string();
        assert!(fault("input.x == 1").contains("there is no variable \"input\""));
        assert!(fault("event.kind == 'a'").contains("there is no variable \"event.kind\""));
        assert!(fault("event.type ==").starts_with("at line 1, column "));
        assert!(Expression::compile("event.type").is_err(), "batches have no event");
    }
}
