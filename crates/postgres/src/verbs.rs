//! Verbs and transitions of the database, which follow those of the program. An older program that migrates a newer store changes nothing.

use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::transition::{Readiness, Verb, transition};

use crate::row::{self, Decoded};
use crate::session::{Repeatable, Sessions};

/// Adds the verbs and transitions that the database does not have. Verbs come first, in a transaction of their own: PostgreSQL cannot use a
/// value of an enum in the transaction that adds it. `set_up`: the settings of migrations.
pub(crate) async fn add_missing(sessions: &Sessions, set_up: &'static str) -> Decoded<()> {
    let all: Vec<&str> = Verb::ALL.iter().map(|verb| verb.as_str()).collect();
    let missing = sessions.rows(sqlx::query(sql!("missing_verbs")).bind(all)).await?;
    let missing: Vec<String> = row::values(missing)?;
    if !missing.is_empty() {
        let add = Repeatable::of(sqlx::query(sql!("add_verbs")).bind(missing));
        sessions
            .atomically(async |tx| {
                tx.script(set_up).await?;
                tx.execute(add).await
            })
            .await?;
    }
    let (mut states, mut verbs, mut next) = (Vec::new(), Vec::new(), Vec::new());
    for state in JobState::ALL {
        for verb in Verb::ALL {
            if let Ok(to) = transition(Some(*state), *verb, Readiness::Ready) {
                states.push(state.as_str());
                verbs.push(verb.as_str());
                next.push(to.as_str());
            }
        }
    }
    let add = sqlx::query(sql!("add_transitions")).bind(states).bind(verbs).bind(next);
    sessions.execute(add).await.map(drop)
}
