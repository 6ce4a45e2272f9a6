-- Where the jobs of this store go, or went.
SELECT move_id, target, began_at_ms, completed_at_ms FROM milepost_departure
