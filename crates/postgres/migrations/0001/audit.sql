-- Audit: actions of operators and their tools, each written in the transaction that made the change, with the change.
-- subject: null for an action on several subjects or on the store itself.
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

-- The age from which entries can be deleted: core::retention::AUDIT_MIN. In hours, since the length of a day depends on the
-- time zone.
create function milepost.audit_age_min() returns interval language sql immutable parallel safe as $$
    select interval '720 hours'
$$;

-- Refuses updates of entries, and deletions of entries that are younger than that age. Applies to all roles with the
-- privilege to delete, so that a privilege granted by mistake cannot delete young entries.
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

-- Refuses entries that cannot be read: a role that may insert one could hide the entries around it, for 30 days.
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
