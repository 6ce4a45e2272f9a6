-- Returns an entry of history. ?1 its position
SELECT pos, job_id, at_ms, to_state FROM milepost_history WHERE pos = ?1
