-- Counts the live jobs of each queue in each state, and returns since when the first of them that are due has been due. ?1 now
SELECT queue, state, count(*), min(ready_at_ms) FILTER (WHERE ready_at_ms <= ?1) FROM milepost_live GROUP BY queue, state
