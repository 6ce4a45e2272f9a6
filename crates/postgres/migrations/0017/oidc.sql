-- Console sessions of people whom an OpenID Connect provider identified, and their sign-ins in progress.

-- A session has either a token or a person. person: the name in the audit without its prefix. granted_by: the hash of the rule of the
-- configuration that grants the role.
alter table milepost.console_session
    alter column token drop not null,
    add column person text,
    add column role text check (role in ('viewer', 'operator', 'admin')),
    add column granted_by bytea check (length(granted_by) = 32),
    add constraint console_session_user check (
        num_nonnulls(token, person) = 1 and num_nonnulls(person, role, granted_by) in (0, 3)
    );

-- id: SHA-256 of the value in the browser's cookie; state: SHA-256 of the state that the provider returns.
create table milepost.console_sign_in (
    id bytea primary key check (length(id) = 32),
    state bytea not null check (length(state) = 32),
    nonce text not null,
    verifier text not null,
    next text not null,
    began_at timestamptz not null default now()
);
create index console_sign_in_began on milepost.console_sign_in (began_at);
