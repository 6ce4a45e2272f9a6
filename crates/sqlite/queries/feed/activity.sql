-- Counts the starts and ends after position ?1, up to position ?2, by second and verb, with about ?3 durations of the state before them, in
-- ms.
WITH happened AS MATERIALIZED (
    SELECT pos, job_id, at_ms, at_ms / 1000 AS at_s, verb
    FROM milepost_history
    WHERE pos > ?1 AND pos <= ?2 AND verb IN ('claim', 'succeed', 'retry', 'fail')
),
counted AS MATERIALIZED (SELECT at_s, verb, count(*) AS times FROM happened GROUP BY at_s, verb)
SELECT c.at_s, c.verb, c.times, (
    SELECT json_group_array(max(h.at_ms - max(p.at_ms, coalesce(p.ready_at_ms, p.at_ms)), 0))
    FROM happened h
    JOIN milepost_history p ON p.pos = (SELECT max(b.pos) FROM milepost_history b WHERE b.job_id = h.job_id AND b.pos < h.pos)
    WHERE c.verb IN ('claim', 'succeed') AND h.at_s = c.at_s AND h.verb = c.verb AND abs(random() % c.times) < ?3
          AND p.to_state IN ('pending', 'retry_wait', 'running')
) AS took_ms
FROM counted c
