-- Incidents of alerts, the notices of them that targets have got, silences, and the state of targets. The limits of texts are those of
-- milepost_core::alert.
create table milepost.alert_incident (
    id uuid primary key,
    rule text not null check (octet_length(rule) <= 100),
    subject text not null check (octet_length(subject) <= 503),
    severity text not null check (severity in ('warning', 'error')),
    title text not null check (octet_length(title) <= 2003),
    words text not null check (octet_length(words) <= 2003),
    command text not null check (octet_length(command) <= 2003),
    first_seen_at timestamptz not null default now(),
    last_seen_at timestamptz not null default now(),
    ended_at timestamptz
);
-- An alert has at most one open incident.
create unique index alert_incident_open on milepost.alert_incident (rule, subject) where ended_at is null;
create index alert_incident_alert on milepost.alert_incident (rule, subject);
create index alert_incident_ended on milepost.alert_incident (ended_at);

create table milepost.alert_notice (
    incident_id uuid not null references milepost.alert_incident on delete cascade,
    target text not null check (octet_length(target) <= 200),
    stage text not null check (stage in ('begun', 'ended')),
    sent_at timestamptz not null default now(),
    primary key (incident_id, target, stage)
);

-- until_at: null means until the incident ends.
create table milepost.alert_silence (
    rule text not null check (octet_length(rule) <= 100),
    subject text not null check (octet_length(subject) <= 503),
    who text not null check (octet_length(who) <= 200),
    why text check (char_length(why) <= 1000),
    made_at timestamptz not null default now(),
    until_at timestamptz,
    primary key (rule, subject)
);

-- claim: the number of the last claim of a message, which is the fence of its outcome. claimed_until: when the claim in progress ends.
create table milepost.alert_target (
    name text primary key check (octet_length(name) <= 200),
    seen_at timestamptz not null,
    claim bigint not null default 0,
    claimed_until timestamptz,
    next_at timestamptz,
    sent_at timestamptz,
    failing_since timestamptz,
    failures integer not null default 0 check (failures >= 0),
    last_error text check (octet_length(last_error) <= 2003)
);
