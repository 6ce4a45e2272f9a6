-- What became of the jobs of queue ?1, none of which is older than the id ?2.
WITH own AS MATERIALIZED (
    SELECT id FROM job WHERE id >= ?2 AND queue = ?1
),
happened AS (
    SELECT
        count(*) FILTER (WHERE h.verb = 'claim') AS attempts,
        count(*) FILTER (WHERE h.from_state = 'running') AS ends,
        count(*) FILTER (WHERE h.verb = 'succeed') AS successes,
        count(*) FILTER (WHERE h.verb = 'retry' AND h.error_code <> 'lease_lost') AS retries,
        count(*) FILTER (WHERE h.error_code = 'lease_lost') AS rescued
    FROM own
    JOIN history AS h ON h.job_id = own.id
)
SELECT
    (SELECT count(*) FROM own) AS jobs,
    (SELECT count(*) FROM own JOIN live AS l ON l.id = own.id WHERE l.state <> 'failed') AS open,
    attempts, ends, successes, retries, rescued
FROM happened
