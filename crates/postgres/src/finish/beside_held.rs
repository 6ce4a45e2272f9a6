//! Ends of runs beside others that open transactions of other programs hold.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use milepost_core::finish::{Finish, Finished};
use milepost_core::ident::WorkerId;
use milepost_core::sql;
use uuid::Uuid;

use super::{Ends, in_order};
use crate::error::is_lock_timeout;
use crate::held_runs::HeldRuns;
use crate::row::{self, Decoded};
use crate::session::Sessions;

/// For how long one call finds out which of the runs are held; the rest counts as held.
const SEARCH_MAX: Duration = Duration::from_millis(500);

/// Ends the runs that are not held, and returns the results in the order of `finishes`.
///
/// One query tells whose rows are held. That a run's group or batch is held shows only when its end waits, so a part whose end waits is
/// halved until the held ones are alone. Runs that nothing else can hold come first, and the others in a different order each time, so
/// that none is always last.
pub(super) async fn end_others(
    memory: &HeldRuns,
    sessions: &Sessions,
    worker: WorkerId,
    finishes: &[Finish],
) -> Decoded<Vec<Finished>> {
    let jobs: Vec<Uuid> = finishes.iter().map(|finish| finish.run.job.0).collect();
    let rows = sessions.rows(sqlx::query(sql!("held_runs")).bind(jobs)).await;
    let held: HashSet<Uuid> = rows.and_then(row::values)?;
    let (mut others, alone): (Vec<usize>, Vec<usize>) = (0..finishes.len())
        .filter(|at| !held.contains(&finishes[*at].run.job.0))
        .partition(|at| finishes[*at].grouped || finishes[*at].task);
    fastrand::shuffle(&mut others);
    let mut told = vec![Finished::Held; finishes.len()];
    let (began, mut parts) = (Instant::now(), vec![others, alone]);
    parts.retain(|part| !part.is_empty());
    while let Some(part) = parts.pop().filter(|_| began.elapsed() < SEARCH_MAX) {
        let these: Vec<Finish> = part.iter().map(|at| finishes[*at].clone()).collect();
        let sorted = in_order(&these);
        let ends = Ends::of(&sorted);
        match sessions.try_briefly(async |tx| ends.store(tx, worker, &these).await).await {
            Ok(answers) => part.iter().zip(answers).for_each(|(at, answer)| told[*at] = answer),
            Err(error) if is_lock_timeout(&error) => {
                let (first, second) = part.split_at(part.len() / 2);
                if !first.is_empty() {
                    parts.extend([second.to_vec(), first.to_vec()]);
                }
            }
            Err(error) => return Err(error),
        }
    }
    memory.remember(finishes, &told);
    Ok(told)
}
