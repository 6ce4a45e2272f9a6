-- Counts the live jobs of each queue, kind and state, and those of them that are due, and since when the first one has been. Only the ?1 kinds with the most jobs are listed; all
-- others are added up in rows without a kind. ?2 now
WITH counted AS MATERIALIZED (
    SELECT queue, kind, state, count(*) AS jobs, count(*) FILTER (WHERE ready_at_ms <= ?2) AS due,
        min(ready_at_ms) FILTER (WHERE ready_at_ms <= ?2) AS oldest_due_at_ms
    FROM milepost_live
    GROUP BY queue, kind, state
),
common AS MATERIALIZED (
    SELECT kind FROM counted GROUP BY kind ORDER BY sum(jobs) DESC, kind LIMIT ?1
)
SELECT counted.queue, common.kind, counted.state, sum(counted.jobs), sum(counted.due), min(counted.oldest_due_at_ms)
FROM counted
LEFT JOIN common ON common.kind = counted.kind
GROUP BY counted.queue, common.kind, counted.state
