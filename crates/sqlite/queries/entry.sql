-- An entry of history. ?1 its place
SELECT pos, job_id, at_ms, to_state FROM milepost_history WHERE pos = ?1
