-- Returns the next entries of history, in time order, without the newest of all. While that entry exists, SQLite reuses no position.
-- ?1 after this position, ?2 how many
SELECT pos, job_id, at_ms, to_state FROM milepost_history
WHERE pos > ?1 AND pos < (SELECT max(pos) FROM milepost_history)
ORDER BY pos
LIMIT ?2
