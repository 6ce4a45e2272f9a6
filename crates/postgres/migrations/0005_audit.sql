-- Audit: what people and their tools did to the store, each with what it changed, in the transaction that changed it.
-- subject: null for many things, or the store.
create table milepost.audit (
    pos bigint generated always as identity primary key,
    at timestamptz not null default now(),
    who text not null,
    what text not null,
    subject text,
    why text,
    detail jsonb not null
);

create index audit_who on milepost.audit (who, pos);
create index audit_what on milepost.audit (what, pos);
create index audit_who_what on milepost.audit (who, what, pos);
create index audit_subject on milepost.audit (subject, pos) where subject is not null;
