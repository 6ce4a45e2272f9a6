-- Counts the live jobs of each queue, kind and state, and those of them that are due. Only the ?1 kinds with the most jobs are listed; all
-- others are added up in rows without a kind. ?2 now
WITH counted AS MATERIALIZED (
    SELECT queue, kind, state, count(*) AS jobs, count(*) FILTER (WHERE ready_at_ms <= ?2) AS due
    FROM milepost_live
    GROUP BY queue, kind, state
),
common AS MATERIALIZED (
    SELECT kind FROM counted GROUP BY kind ORDER BY sum(jobs) DESC, kind LIMIT ?1
)
SELECT counted.queue, common.kind, counted.state, sum(counted.jobs), sum(counted.due)
FROM counted
LEFT JOIN common ON common.kind = counted.kind
GROUP BY counted.queue, common.kind, counted.state
