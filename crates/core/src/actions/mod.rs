//! The actions of operators, each described once: its name, its label, its effect, its inputs, and the states in which it is allowed. The CLI,
//! the HTTP API and the console show these descriptions. There is one module for each kind of object.

pub mod alert;
pub mod batch;
pub mod bulk_run;
pub mod dead_letter;
pub mod job;
pub mod limit;
pub mod parked;
pub mod queue;
pub mod retention;
pub mod schedule;
pub mod select;
pub mod subscription;

use std::time::Duration;

use humantime::format_duration;

/// How long a running job may take to stop before its worker loses it, unless the operator gives another time.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(10);
/// The maximum length of a reason, in characters.
pub const REASON_CHARS_MAX: usize = 1_000;

/// Returns a reason without surrounding whitespace; `None` if it is empty.
///
/// # Errors
/// `Err(())` when it is too long, or has control characters other than line breaks and tabs.
pub(crate) fn reason(text: &str) -> Result<Option<&str>, ()> {
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    let text = trimmed(text);
    if text.is_some_and(|text| text.chars().count() > REASON_CHARS_MAX || text.contains(is_odd)) {
        return Err(());
    }
    Ok(text)
}

/// Returns a reason without surrounding whitespace; `None` if nothing is left.
pub(crate) fn trimmed(reason: &str) -> Option<&str> {
    Some(reason.trim_matches([' ', '\n', '\r', '\t'])).filter(|reason| !reason.is_empty())
}

/// The description of an action.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The label of its button.
    pub title: &'static str,
    /// What it does, in one line, for lists of commands.
    pub summary: &'static str,
    /// The effect on each object, in sentences.
    pub effect: &'static str,
    /// Whether it stops, ends or deletes something.
    pub is_destructive: bool,
    /// Its inputs, besides the reason, which every action has.
    pub inputs: &'static [Input],
}

impl Description {
    /// Describes an action without inputs that stops, ends and deletes nothing.
    const fn new(title: &'static str, summary: &'static str, effect: &'static str) -> Self {
        Self { title, summary, effect, is_destructive: false, inputs: &[] }
    }

    /// Sets whether the action stops, ends or deletes something.
    const fn is_destructive(self, is_destructive: bool) -> Self {
        Self { is_destructive, ..self }
    }

    /// Sets the inputs.
    const fn inputs(self, inputs: &'static [Input]) -> Self {
        Self { inputs, ..self }
    }

    /// Returns the effect in full: with what happens to running jobs, if the action stops them.
    #[must_use]
    pub fn effect(&self) -> String {
        if !self.inputs.contains(&Input::Grace) {
            return self.effect.to_owned();
        }
        let grace = format_duration(GRACE_DEFAULT);
        format!(
            "{} A running job is asked to stop; after the grace time ({grace} by default) its worker loses it, and later reports of the \
             worker about it are refused.",
            self.effect
        )
    }
}

/// An input of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// How long a running job may take to stop; [`GRACE_DEFAULT`] if it is not given.
    Grace,
    /// How long a job is not claimed; if it is not given, the job can be claimed immediately.
    Delay,
    /// The same, but without a default.
    RequiredDelay,
}

/// An action of operators.
pub trait Action: Copy + 'static {
    /// Returns its name in commands, requests and forms.
    fn name(self) -> &'static str;

    /// Returns its description.
    fn description(self) -> Description;

    /// Returns the label of its button.
    fn title(self) -> &'static str {
        self.description().title
    }

    /// Returns its effect, in sentences.
    fn effect(self) -> String {
        self.description().effect()
    }

    /// Returns whether it stops, ends or deletes something.
    fn is_destructive(self) -> bool {
        self.description().is_destructive
    }
}

/// Declares the actions on one kind of object: their names in commands, requests and forms, and their descriptions.
macro_rules! actions {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal {
        title: $title:literal, summary: $summary:literal, effect: $effect:literal $(, $field:ident: $value:expr)* $(,)?
    })+ }) => {
        $crate::named::named_enum! {
            $(#[$meta])*
            $name { $(#[doc = $effect] $variant = $text,)+ }
        }

        impl $crate::actions::Action for $name {
            fn name(self) -> &'static str {
                self.as_str()
            }

            fn description(self) -> $crate::actions::Description {
                match self {
                    $(Self::$variant => {
                        $crate::actions::Description::new($title, $summary, $effect)$(.$field($value))*
                    },)+
                }
            }
        }
    };
}
use actions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_trimmed_and_bounded() {
        assert_eq!(reason(" the disk was\nreplaced \n"), Ok(Some("the disk was\nreplaced")));
        assert_eq!((reason(""), reason(" \t\n")), (Ok(None), Ok(None)));
        assert!(reason(&"ä".repeat(REASON_CHARS_MAX)).is_ok());
        assert!(reason(&"ä".repeat(REASON_CHARS_MAX + 1)).is_err() && reason("\u{0}").is_err());
    }
}
