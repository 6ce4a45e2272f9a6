-- Running jobs with a stop request whose grace period has expired. ?1 now, ?2 how many
SELECT id, token, stop_verb FROM milepost_live INDEXED BY milepost_live_stop
WHERE stop_at_ms <= ?1 AND state = 'running'
ORDER BY stop_at_ms
LIMIT ?2
