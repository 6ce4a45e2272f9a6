//! Tests of moves that were killed or abandoned.

use std::sync::Arc;

use milepost_core::port::Store;
use milepost_core::relocation::MoveId;

use crate::relocation::stock::{fill, stock};
use crate::relocation::{Move, assert_same, listed};
use crate::support::{Place, block_on};

#[test]
fn a_move_that_is_killed_again_and_again_ends_as_one_that_was_not() {
    let both = Move::new();
    let (old, rows) = block_on(async {
        let sqlite = both.sqlite();
        let store: Arc<dyn Store> = Arc::new(sqlite.clone());
        fill(&store).await;
        stock(&store, 900).await;
        both.expire_leases();
        let rows: u64 = sqlite.count_parts().await.unwrap().iter().map(|(_, rows)| rows).sum();
        (listed(store.as_ref()).await, rows)
    });
    both.kill_while_tables_are_created();
    assert_eq!(both.new.tamper("select count(*) from pg_tables where schemaname = 'milepost'"), "0");
    both.kill_at(0);
    for tenths in [1, 3, 5, 8, 9] {
        both.kill_at(rows * tenths / 10);
        let refused = both.old.run(&["enqueue", "mail"]);
        assert!(refused.err.contains("are being moved to"), "{}", refused.err);
    }
    let moved = both.run(&["--json"]).json();
    assert_eq!((&moved["resumed"], &moved["complete"]), (&true.into(), &true.into()));
    assert!(moved["rows"].as_u64().unwrap() < rows / 4, "rows that had arrived were moved again: {moved:#}");
    block_on(async { assert_same(&old, &listed(&both.postgres().await).await) });
    let again = both.run(&[]).ok();
    assert!(again.out.contains("already"), "{}", again.out);
}

#[test]
fn a_move_killed_between_the_marks_of_the_two_stores_goes_on() {
    let both = Move::new();
    let id = MoveId::new();
    block_on(async {
        let source = both.sqlite();
        stock(&(Arc::new(source.clone()) as Arc<dyn Store>), 3).await;
        both.expire_leases();
        source.depart(id, &both.new.store).await.unwrap();
    });
    let elsewhere = Place::empty_postgres();
    let refused = both.old.run(&["move", "--from", &both.old.store, "--to", &elsewhere.store]);
    assert!(refused.status == 1 && refused.err.contains(&both.new.store), "{}", refused.err);
    let moved = both.run(&["--json"]).json();
    assert_eq!((&moved["move"], &moved["complete"]), (&id.to_string().into(), &true.into()));
    // The state after a kill before the old store was marked as complete.
    both.old.tamper("UPDATE milepost.departure SET completed_at_ms = NULL RETURNING target");
    both.run(&[]).ok();
    let refused = both.old.run(&["enqueue", "mail"]);
    assert!(refused.err.contains("were moved to"), "{}", refused.err);
    let given_up = both.run(&["--give-up"]);
    assert!(given_up.status == 1 && given_up.err.contains("is complete"), "{}", given_up.err);
}

#[test]
fn a_move_given_up_leaves_both_stores_as_they_were() {
    let (both, old) = Move::filled();
    let none = both.run(&["--give-up"]);
    assert!(none.status == 1 && none.err.contains("no move to abandon"), "{}", none.err);
    both.kill_at(100);
    let given_up = both.run(&["--give-up"]).ok();
    assert!(given_up.out.contains("abandoned move"), "{}", given_up.out);
    block_on(async {
        assert_same(&old, &listed(&both.sqlite()).await);
        let new = both.postgres().await;
        assert_eq!(new.arrival().await.unwrap(), None);
        assert!(new.count_parts().await.unwrap().iter().all(|(_, rows)| *rows == 0));
    });
    let late = both.old.enqueue(&[]);
    let moved = both.run(&["--json"]).json();
    assert_eq!((&moved["resumed"], &moved["complete"]), (&false.into(), &true.into()));
    assert_eq!(both.new.job(&late)["state"], "pending");
}
