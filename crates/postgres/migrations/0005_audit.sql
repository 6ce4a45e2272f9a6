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

-- The age from which entries can be deleted: core::retention::AUDIT_MIN. In hours: how long a day is depends on the time zone.
create function milepost.audit_age_min() returns interval language sql immutable parallel safe as $$
    select interval '720 hours'
$$;

-- Refuses changes of entries, and deletions of those that are younger than that. Whoever may delete entries at all is not asked who they are: a
-- right that was granted by mistake deletes nothing that is young.
create function milepost.keep_audit() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
    if tg_op = 'DELETE' and old.at < now() - milepost.audit_age_min() then
        return old;
    end if;
    raise exception using errcode = 'insufficient_privilege',
        message = 'an entry of the audit cannot be changed, nor be deleted in its first 30 days';
end
$$;

create trigger kept before update or delete on milepost.audit for each row execute function milepost.keep_audit();
create trigger kept_whole before truncate on milepost.audit for each statement execute function milepost.keep_audit();

-- Refuses entries that nobody can read: whoever can add one could hide those around it, for 30 days.
create function milepost.check_audit() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
declare
    refused text := milepost.refuse_document(new.detail, 1048576);
begin
    if refused is null and (octet_length(new.who) > 1000 or octet_length(new.what) > 200 or octet_length(new.subject) > 4000 or octet_length(new.why) > 4000) then
        refused := 'has a name, a subject or a reason that is too long';
    end if;
    if refused is not null then
        raise exception using errcode = 'check_violation', message = format('the entry of the audit %s', refused);
    end if;
    return new;
end
$$;

create trigger readable before insert on milepost.audit for each row execute function milepost.check_audit();
