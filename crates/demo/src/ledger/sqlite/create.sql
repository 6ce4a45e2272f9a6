-- Only the row number is unique: a place that is notified twice has two rows.
CREATE TABLE IF NOT EXISTS milepost_demo_notification (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    place_id INTEGER NOT NULL,
    job_id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    written_at_ms INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
) STRICT
