-- Incidents of alerts, the notices of them that targets have got, silences, and the state of targets. The limits of texts are those of
-- milepost_core::alert.
CREATE TABLE milepost_alert_incident (
    id               BLOB    PRIMARY KEY NOT NULL CHECK (length(id) = 16),
    rule             TEXT    NOT NULL CHECK (length(rule) <= 100),
    subject          TEXT    NOT NULL CHECK (length(subject) <= 503),
    severity         TEXT    NOT NULL CHECK (severity IN ('warning', 'error')),
    title            TEXT    NOT NULL CHECK (length(title) <= 2003),
    words            TEXT    NOT NULL CHECK (length(words) <= 2003),
    command          TEXT    NOT NULL CHECK (length(command) <= 2003),
    first_seen_at_ms INTEGER NOT NULL,
    last_seen_at_ms  INTEGER NOT NULL,
    ended_at_ms      INTEGER
) STRICT, WITHOUT ROWID;
-- An alert has at most one open incident.
CREATE UNIQUE INDEX milepost_alert_incident_open ON milepost_alert_incident (rule, subject) WHERE ended_at_ms IS NULL;
CREATE INDEX milepost_alert_incident_alert ON milepost_alert_incident (rule, subject);
CREATE INDEX milepost_alert_incident_ended ON milepost_alert_incident (ended_at_ms);

CREATE TABLE milepost_alert_notice (
    incident_id BLOB    NOT NULL,
    target      TEXT    NOT NULL CHECK (length(target) <= 200),
    stage       TEXT    NOT NULL CHECK (stage IN ('begun', 'ended')),
    sent_at_ms  INTEGER NOT NULL,
    PRIMARY KEY (incident_id, target, stage)
) STRICT, WITHOUT ROWID;

-- until_at_ms: NULL means until the incident ends.
CREATE TABLE milepost_alert_silence (
    rule        TEXT    NOT NULL CHECK (length(rule) <= 100),
    subject     TEXT    NOT NULL CHECK (length(subject) <= 503),
    who         TEXT    NOT NULL CHECK (length(who) <= 200),
    why         TEXT    CHECK (length(why) <= 1000),
    made_at_ms  INTEGER NOT NULL,
    until_at_ms INTEGER,
    PRIMARY KEY (rule, subject)
) STRICT, WITHOUT ROWID;

-- claim: the number of the last claim of a message, which is the fence of its outcome. claimed_until_ms: when the claim in progress ends.
CREATE TABLE milepost_alert_target (
    name             TEXT    PRIMARY KEY NOT NULL CHECK (length(name) <= 200),
    seen_at_ms       INTEGER NOT NULL,
    claim            INTEGER NOT NULL DEFAULT 0,
    claimed_until_ms INTEGER,
    next_at_ms       INTEGER,
    sent_at_ms       INTEGER,
    failing_since_ms INTEGER,
    failures         INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    last_error       TEXT    CHECK (length(last_error) <= 2003)
) STRICT, WITHOUT ROWID;
