//! The next step of a move, derived from the marks of both stores. Pure functions.

use anyhow::{Result, bail};
use milepost_core::relocation::{Arrival, Departure, MoveId};

/// The next step of a move.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Neither store is marked.
    Begin,
    /// The source is marked, the target not yet.
    BeginToFill(MoveId),
    /// Both stores are marked.
    GoOn(MoveId),
    /// All rows were copied; the source may still have to be marked as complete.
    Close(MoveId),
}

/// Returns the next step of a move to the store displayed as `to`.
pub(super) fn of(departure: Option<&Departure>, arrival: Option<&Arrival>, to: &str) -> Result<Route> {
    match (departure, arrival) {
        (None, None) => Ok(Route::Begin),
        (Some(left), Some(filled)) if left.id == filled.id => Ok(match filled.completed_at {
            Some(_) => Route::Close(left.id),
            None => Route::GoOn(left.id),
        }),
        (Some(Departure { completed_at: Some(at), to, id, .. }), _) => {
            bail!("the jobs of this store were moved to {to} at {at} (move {id}); use that store")
        }
        (_, Some(Arrival { completed_at: Some(at), from, id, .. })) => {
            bail!(
                "{to} was filled from {from} at {at} (move {id}); stores cannot be merged: give an empty database"
            )
        }
        (_, Some(Arrival { began_at, from, id, .. })) => bail!(
            "{to} is being filled by another move, from {from} since {began_at} (move {id}); give an empty database"
        ),
        (Some(left), None) if left.to == to => Ok(Route::BeginToFill(left.id)),
        (Some(left), None) => bail!(elsewhere(left)),
    }
}

/// Returns the move to abandon.
pub(super) fn to_give_up(
    departure: Option<&Departure>,
    arrival: Option<&Arrival>,
    to: &str,
) -> Result<MoveId> {
    let Some(left) = departure else {
        match arrival {
            Some(Arrival { from, id, completed_at: None, .. }) => bail!(
                "the store of --from is not being moved, but {from} is moved to {to} (move {id}); give that one as --from"
            ),
            _ => bail!("there is no move to abandon: the store of --from is not being moved"),
        }
    };
    let here = arrival.filter(|filled| filled.id == left.id);
    if left.completed_at.is_some() {
        bail!("move {} to {} is complete and cannot be abandoned", left.id, left.to);
    }
    match here {
        Some(Arrival { completed_at: Some(_), .. }) => bail!(
            "move {} has copied everything and cannot be abandoned; run it again to close the old store",
            left.id
        ),
        Some(_) => Ok(left.id),
        None if left.to == to => Ok(left.id),
        None => bail!(elsewhere(left)),
    }
}

fn elsewhere(left: &Departure) -> String {
    let Departure { id, to, began_at, .. } = left;
    format!(
        "the store is being moved to {to} since {began_at} (move {id}); continue with --to {to}, or abandon that move with --give-up"
    )
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    const TO: &str = "postgres://db/app";

    fn departure(id: MoveId, to: &str, complete: bool) -> Departure {
        let at = Timestamp::UNIX_EPOCH;
        Departure { id, to: to.to_owned(), began_at: at, completed_at: complete.then_some(at) }
    }

    fn arrival(id: MoveId, complete: bool) -> Arrival {
        let at = Timestamp::UNIX_EPOCH;
        let from = "sqlite:jobs.db".to_owned();
        Arrival { id, from, began_at: at, completed_at: complete.then_some(at) }
    }

    #[test]
    fn a_move_goes_on_from_wherever_it_fell() {
        let id = MoveId::new();
        let left = departure(id, TO, false);
        assert_eq!(of(None, None, TO).unwrap(), Route::Begin);
        assert_eq!(of(Some(&left), None, TO).unwrap(), Route::BeginToFill(id));
        assert_eq!(of(Some(&left), Some(&arrival(id, false)), TO).unwrap(), Route::GoOn(id));
        assert_eq!(of(Some(&left), Some(&arrival(id, true)), TO).unwrap(), Route::Close(id));
        let gone = departure(id, TO, true);
        assert_eq!(of(Some(&gone), Some(&arrival(id, true)), TO).unwrap(), Route::Close(id));
        let other_name = of(Some(&left), Some(&arrival(id, false)), "postgres://db.internal/app");
        assert_eq!(other_name.unwrap(), Route::GoOn(id), "the mark identifies the store, not its address");
    }

    #[test]
    fn whatever_another_move_has_to_do_with_is_left_alone() {
        let (id, other) = (MoveId::new(), MoveId::new());
        let left = departure(id, TO, false);
        for (departure, arrival, words) in [
            (None, Some(arrival(other, false)), "another move"),
            (None, Some(arrival(other, true)), "stores cannot be merged"),
            (Some(left.clone()), Some(arrival(other, false)), "another move"),
            (Some(departure(id, TO, true)), None, "use that store"),
            (Some(departure(id, "postgres://other/db", false)), None, "postgres://other/db"),
        ] {
            let refused = of(departure.as_ref(), arrival.as_ref(), TO).unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn only_the_move_of_both_stores_is_given_up_and_no_complete_one() {
        let (id, other) = (MoveId::new(), MoveId::new());
        let left = departure(id, TO, false);
        assert_eq!(to_give_up(Some(&left), Some(&arrival(id, false)), TO).unwrap(), id);
        assert_eq!(to_give_up(Some(&left), None, TO).unwrap(), id);
        assert_eq!(to_give_up(Some(&left), Some(&arrival(other, false)), TO).unwrap(), id, "only the mark");
        for (departure, arrival, words) in [
            (None, None, "no move to abandon"),
            (None, Some(arrival(other, false)), "give that one as --from"),
            (Some(left.clone()), Some(arrival(id, true)), "has copied everything"),
            (Some(departure(id, TO, true)), Some(arrival(id, true)), "is complete"),
            (Some(departure(id, "postgres://other/db", false)), None, "postgres://other/db"),
        ] {
            let refused = to_give_up(departure.as_ref(), arrival.as_ref(), TO).unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
