-- Temporary tables that fill_sqlite.sql reads.
CREATE TEMP TABLE round (first, last, a_day, days, payload_bytes, now_ms);
CREATE TEMP TABLE made (n INTEGER PRIMARY KEY, at_ms, id, state);
CREATE TEMP TABLE step (state, place, token, verb, from_state, to_state);
INSERT INTO temp.step VALUES
    ('succeeded', 1, 0, 'create', NULL, 'pending'), ('succeeded', 2, 1, 'claim', 'pending', 'running'),
    ('succeeded', 3, 1, 'succeed', 'running', 'succeeded'),
    ('failed', 1, 0, 'create', NULL, 'pending'), ('failed', 2, 1, 'claim', 'pending', 'running'),
    ('failed', 3, 1, 'fail', 'running', 'failed'),
    ('canceled', 1, 0, 'create', NULL, 'pending'), ('canceled', 2, 0, 'cancel', 'pending', 'canceled');
