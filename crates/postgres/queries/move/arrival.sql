-- The move that fills or has filled this store.
select move_id, source, began_at, completed_at from milepost.arrival
