-- Stores the jobs of the table made, with a complete history, and deletes them from that table.
INSERT INTO milepost_job (id, kind, queue, payload, key, priority, max_attempts, created_at_ms)
SELECT id, kind, queue, printf('{"order":%d,"customer":"c%d","amount":%d.5}', n, n % 9973, n % 500), key, 2, 5, at_ms
FROM temp.made
ORDER BY n;

INSERT INTO milepost_job_key (kind, key, job_id) SELECT kind, key, id FROM temp.made WHERE key IS NOT NULL;

INSERT INTO milepost_ended (id, kind, queue, state, attempt, max_attempts, token, ended_at_ms, started_at_ms)
SELECT id, kind, queue, state, 1, 5, 1, at_ms + 900, at_ms + 400
FROM temp.made
WHERE state = 'succeeded'
ORDER BY n;

INSERT INTO milepost_live (id, kind, queue, priority, state, ready_at_ms, attempt, max_attempts, token)
SELECT id, kind, queue, 2, state, iif(state = 'pending', at_ms, NULL), state = 'failed', 5, state = 'failed'
FROM temp.made
WHERE state <> 'succeeded'
ORDER BY n;

INSERT INTO milepost_history
    (job_id, at_ms, verb, from_state, to_state, attempt, token, worker_id, ready_at_ms, error_code, error_message)
SELECT made.id, made.at_ms + step.after_ms, step.verb, step.from_state, step.to_state, step.token, step.token,
       iif(step.token = 1, made.worker_id, NULL), iif(step.verb = 'create', made.at_ms, NULL),
       CASE WHEN step.verb = 'fail'
            THEN CASE made.n % 3 WHEN 0 THEN 'timeout' WHEN 1 THEN 'http_503' ELSE 'bad_row' END END,
       CASE WHEN step.verb = 'fail' THEN 'upstream said 503 for order ' || made.n END
FROM temp.made AS made
JOIN temp.step AS step ON step.state = made.state
ORDER BY made.n, step.place;

DELETE FROM temp.made;
