-- Functions of the audit log and for the use of tokens. Not public: roles.sql grants them to servers and workers, whose
-- rights on the tables do not suffice.

-- Deletes up to rows_max entries that are older than keep_ms, and never younger than audit_age_min(), oldest first. Returns how many.
create or replace function milepost.prune_audit(keep_ms bigint, rows_max bigint) returns bigint language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    pruned bigint;
begin
    with oldest as materialized (
        select pos, at from milepost.audit order by pos limit greatest(rows_max, 0)
    ), due as materialized (
        select a.pos from oldest o join milepost.audit a using (pos)
        where o.at < now() - greatest(keep_ms * interval '1 millisecond', milepost.audit_age_min())
        for update of a skip locked
    )
    delete from milepost.audit a using due where a.pos = due.pos;
    get diagnostics pruned = row_count;
    return pruned;
end
$$;

revoke execute on function milepost.prune_audit from public;

-- Records that a token was used, unless that happened within the last minute, or another transaction is changing the token.
create or replace function milepost.touch_token(used_prefix text) returns void language sql security definer
set search_path = pg_catalog, pg_temp as $$
    update milepost.access_token a set last_used_at = now()
    where a.prefix in (
        select t.prefix from milepost.access_token t
        where t.prefix = used_prefix and (t.last_used_at is null or t.last_used_at < now() - interval '1 minute')
        for no key update skip locked)
$$;

revoke execute on function milepost.touch_token from public;
