-- Retention of the audit. Not public: roles.sql grants it to servers and workers, which have no right to delete entries.

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
