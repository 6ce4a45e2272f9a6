-- Counts of the jobs of queue ?1, none of which is older than the id ?2, and of their history. A job is open if it has neither ended nor
-- become a dead letter, whichever table it is in.
WITH own AS MATERIALIZED (
    SELECT id FROM milepost_job WHERE id >= ?2 AND queue = ?1
),
happened AS (
    SELECT
        count(*) FILTER (WHERE h.verb = 'claim') AS attempts,
        count(*) FILTER (WHERE h.from_state = 'running') AS ends,
        count(*) FILTER (WHERE h.verb = 'succeed') AS successes,
        count(*) FILTER (WHERE h.verb = 'retry' AND h.error_code <> 'lease_lost') AS retries,
        count(*) FILTER (WHERE h.error_code = 'lease_lost') AS rescued
    FROM own
    JOIN milepost_history AS h ON h.job_id = own.id
)
SELECT
    (SELECT count(*) FROM own) AS jobs,
    (
        SELECT count(*) FROM own
        WHERE NOT EXISTS (SELECT 1 FROM milepost_ended AS e WHERE e.id = own.id)
          AND NOT EXISTS (SELECT 1 FROM milepost_live AS l WHERE l.id = own.id AND l.state = 'failed')
    ) AS open,
    attempts, ends, successes, retries, rescued
FROM happened
