-- Counts the jobs of a group that have their slot but have not started, and whose start is reserved. ?1 group
SELECT count(*) FROM milepost_live INDEXED BY milepost_live_start_reserved
WHERE group_key = ?1 AND start_reserved = 1 AND ready_at_ms IS NOT NULL
