-- Access tokens, by which servers identify their clients, and sessions of users who signed in with one.

-- prefix: the part of the token that is not secret. hash: SHA-256 of the whole token, whose other part is 256 random bits.
-- Rows are never deleted, so that actions under the token's name remain attributable.
create table milepost.access_token (
    prefix text primary key,
    name text not null,
    hash bytea not null check (length(hash) = 32),
    role text not null check (role in ('viewer', 'operator', 'admin', 'worker')),
    created_at timestamptz not null default now(),
    created_by text not null,
    starts_at timestamptz not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz check (last_used_at between '0001-01-02 00:00Z' and '9999-12-30 00:00Z')
);
create unique index access_token_name on milepost.access_token (name) where revoked_at is null;

-- id: SHA-256 of the value in the browser's cookie; former_id: that of the previous value, which is accepted for a short
-- time after rotated_at.
create table milepost.console_session (
    id bytea primary key check (length(id) = 32),
    former_id bytea unique,
    token text not null references milepost.access_token,
    csrf text not null,
    began_at timestamptz not null default now(),
    seen_at timestamptz not null default now(),
    rotated_at timestamptz not null default now()
);
create index console_session_token on milepost.console_session (token);
create index console_session_began on milepost.console_session (began_at);
