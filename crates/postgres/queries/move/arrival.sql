-- The move that fills this store, or has filled it.
select move_id, source, began_at, completed_at from milepost.arrival
