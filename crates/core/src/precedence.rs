//! Precedence of operators over configuration files, and of operators over each other, when they set the same limit or schedule; and which
//! definitions a configuration keeps, so that several teams can share a store.

/// The result of storing a limit or a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The value was stored.
    Stands,
    /// Nothing was changed: a configuration names an object that an operator has set.
    Foreign,
    /// Nothing was changed: the object is not the one that it should replace.
    Outdated,
}

/// The object that another one may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Whatever exists, or nothing.
    Any,
    /// Nothing: an existing object is kept.
    Nothing,
    /// The object with this version. It is not created again if it has been removed.
    Version(i64),
}

impl Over {
    /// Returns the version that the statements of stores compare: none for any, and 0, which no object has, for nothing.
    #[must_use]
    pub const fn version(self) -> Option<i64> {
        match self {
            Self::Any => None,
            Self::Nothing => Some(0),
            Self::Version(version) => Some(version),
        }
    }

    /// Returns the result of a statement that stored the object, or found another one.
    #[must_use]
    pub fn put(self, stored: bool) -> Put {
        match (stored, self) {
            (true, _) => Put::Stands,
            (false, Self::Any) => Put::Foreign,
            (false, _) => Put::Outdated,
        }
    }
}

/// The result of applying a configuration's limits or schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// The names that the configuration no longer contains and that were therefore removed.
    pub removed: Vec<String>,
    /// The names that an operator has set; these were left unchanged.
    pub foreign: Vec<String>,
}

/// The schedules, limits and bulk jobs that a configuration keeps: those of them that it no longer contains are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All that came from any configuration.
    #[default]
    All,
    /// Those whose names belong to this team.
    Team(String),
}

impl Scope {
    /// Returns whether the scope contains a name. To the team `billing` belong `billing` and the names that begin with it and a character
    /// that is neither a letter nor a digit, such as `billing.invoice` and `billing:*`, but not `billings`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Team(team) => {
                name.strip_prefix(team.as_str()).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_team_has_the_names_that_begin_with_its_own() {
        let team = Scope::Team("billing".to_owned());
        for name in ["billing", "billing.invoice", "billing:*", "billing-nightly", "billing_x", "billing/x"] {
            assert!(team.has(name) && Scope::All.has(name), "{name}");
        }
        for name in ["billings", "billing2", "bill", "mail", "", "Billing.x", "x.billing.y", "billingé"] {
            assert!(!team.has(name) && Scope::All.has(name), "{name}");
        }
    }
}
