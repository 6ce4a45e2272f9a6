-- Audit: what people and their tools did to the store, beyond what the history of jobs says. Only grows.
create table milepost.audit (
    pos bigint generated always as identity primary key,
    at timestamptz not null default now(),
    who text not null,
    what text not null,
    detail jsonb not null
);
