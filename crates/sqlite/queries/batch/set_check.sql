-- Sets when a wait is checked next, and its output. ?1 batch, ?2 task, ?3 time or NULL, ?4 output; NULL: as before
UPDATE milepost_batch_wait SET check_at_ms = ?3, output = coalesce(?4, output) WHERE batch_id = ?1 AND task = ?2
