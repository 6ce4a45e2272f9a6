-- Notices have no unique constraint: a channel that is notified twice has two.
CREATE TABLE IF NOT EXISTS milepost_demo_channel (
    world INTEGER NOT NULL, id INTEGER NOT NULL, x REAL NOT NULL, y REAL NOT NULL, z REAL NOT NULL,
    PRIMARY KEY (world, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS milepost_demo_notice (run TEXT NOT NULL, channel INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS milepost_demo_notice_run ON milepost_demo_notice (run, channel);
