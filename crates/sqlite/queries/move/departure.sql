-- Returns the target of this store's move, in progress or completed.
SELECT move_id, target, began_at_ms, completed_at_ms FROM milepost_departure
