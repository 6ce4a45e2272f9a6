-- The temporary table that number.sql and fill.sql use.
CREATE TEMP TABLE made (n INTEGER PRIMARY KEY, at_ms, id, kind, queue, key, state, worker_id);
CREATE TEMP TABLE step (state, place, after_ms, token, verb, from_state, to_state);
INSERT INTO temp.step VALUES
    ('pending', 1, 0, 0, 'create', NULL, 'pending'),
    ('succeeded', 1, 0, 0, 'create', NULL, 'pending'), ('succeeded', 2, 400, 1, 'claim', 'pending', 'running'),
    ('succeeded', 3, 900, 1, 'succeed', 'running', 'succeeded'),
    ('failed', 1, 0, 0, 'create', NULL, 'pending'), ('failed', 2, 400, 1, 'claim', 'pending', 'running'),
    ('failed', 3, 900, 1, 'fail', 'running', 'failed');
