-- How many live jobs of each kind each queue has in each state. Of the ?1 kinds with the most jobs; those of all others are one, without a kind.
WITH counted AS MATERIALIZED (
    SELECT queue, kind, state, count(*) AS jobs FROM milepost_live GROUP BY queue, kind, state
),
common AS MATERIALIZED (
    SELECT kind FROM counted GROUP BY kind ORDER BY sum(jobs) DESC, kind LIMIT ?1
)
SELECT counted.queue, common.kind, counted.state, sum(counted.jobs)
FROM counted
LEFT JOIN common ON common.kind = counted.kind
GROUP BY counted.queue, common.kind, counted.state
