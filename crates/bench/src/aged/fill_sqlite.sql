-- Creates the same rows as fill_postgres.sql. The parameters are in the table round: first, last (exclusive), a_day, days, payload_bytes,
-- now_ms.
DELETE FROM temp.made;

INSERT INTO temp.made (n, at_ms, id, state)
WITH RECURSIVE number (n) AS (
    SELECT first FROM temp.round
    UNION ALL
    SELECT n + 1 FROM number, temp.round WHERE n + 1 < last
)
SELECT n, at_ms, unhex(printf('%012x7%03x8%015x', at_ms, n % 4096, n)),
       CASE n % 100 WHEN 0 THEN 'canceled' WHEN 1 THEN 'failed' ELSE 'succeeded' END
FROM (
    SELECT n, now_ms - CAST((days - n * 1.0 / a_day) * 86400000 AS INTEGER) AS at_ms FROM number, temp.round
);

INSERT INTO milepost_job (id, kind, queue, payload, key, priority, max_attempts, created_at_ms)
SELECT id, 'noop', 'milepost-bench',
       printf('{"n":%d,"pad":"%s"}', n, substr(hex(zeroblob((SELECT payload_bytes FROM temp.round))), 1,
              max((SELECT payload_bytes FROM temp.round) - 20, 0))),
       'aged-' || n, 2, 25, at_ms
FROM temp.made;

INSERT INTO milepost_job_key (kind, key, job_id) SELECT 'noop', 'aged-' || n, id FROM temp.made;

INSERT INTO milepost_ended (id, kind, queue, state, attempt, max_attempts, token, ended_at_ms, started_at_ms)
SELECT id, 'noop', 'milepost-bench', state, state <> 'canceled', 25, state <> 'canceled', at_ms, at_ms
FROM temp.made WHERE state <> 'failed';

INSERT INTO milepost_live (id, kind, queue, priority, state, attempt, max_attempts, token)
SELECT id, 'noop', 'milepost-bench', 2, state, 1, 25, 1 FROM temp.made WHERE state = 'failed';

INSERT INTO milepost_history (job_id, at_ms, verb, from_state, to_state, attempt, token)
SELECT made.id, made.at_ms, step.verb, step.from_state, step.to_state, step.token, step.token
FROM temp.made AS made
JOIN temp.step AS step ON step.state = made.state
ORDER BY made.n, step.place;
