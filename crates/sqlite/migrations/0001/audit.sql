-- Audit log: changes made by operators and their tools. Each row is written in the transaction of the change.
CREATE TABLE milepost_audit (
    pos     INTEGER PRIMARY KEY,
    at_ms   INTEGER NOT NULL,
    who     TEXT    NOT NULL,
    what    TEXT    NOT NULL,
    -- NULL: several objects, or the whole store.
    subject TEXT,
    why     TEXT,
    detail  TEXT    NOT NULL
) STRICT;

CREATE INDEX milepost_audit_who ON milepost_audit (who);
CREATE INDEX milepost_audit_what ON milepost_audit (what);
CREATE INDEX milepost_audit_who_what ON milepost_audit (who, what);
CREATE INDEX milepost_audit_subject ON milepost_audit (subject) WHERE subject IS NOT NULL;
