-- noted_in: the transaction id that wrote the row (xmin). In a restored dump, also of the data only, the rows have another one, so that the store is
-- known to be restored. It is random, because a restore has the same id each time in copies of one data folder; see milepost.note_timeline(). So
-- whoever updates rows of this table, or has them rewritten, sets noted_in again.
-- restored_rows: the number of restored rows when this one was noted. If there are more now, data was restored since.
-- log_salt: random in a restored store, so that its log is another one than that of the dump, even if server and tables have the same numbers; see
-- milepost.log_identity().
alter table milepost.timeline
    add column noted_in bigint not null default pg_current_xact_id()::xid::text::bigint,
    add column restored_rows int not null default 0,
    add column log_salt bigint not null default 0;
alter table milepost.timeline drop constraint timeline_pkey;
alter table milepost.timeline add primary key (server, id, noted_in);
do $$
declare
    again int := floor(random() * 20000);
    expected bigint := 0;
    written bigint;
begin
    for passed in 1 .. again loop
        begin
            perform pg_logical_emit_message(true, 'milepost', '');
            raise exception 'again';
        exception when raise_exception then
            null;
        end;
    end loop;
    -- Each attempt takes the id of a subtransaction.
    loop
        begin
            update milepost.timeline set noted_in = expected;
            written := (select max(t.xmin::text::bigint) from milepost.timeline t);
            exit when written is null or written = expected;
            expected := case when written = 4294967295 then 3 else written + 1 end;
            raise exception 'again';
        exception when raise_exception then
            null;
        end;
    end loop;
end
$$;

-- For the view; see sql/epoch.sql.
create function milepost.is_noted() returns boolean language plpgsql stable as $$
declare
    is_noted boolean;
begin
    select count(*) filter (where t.xmin::text::bigint <> t.noted_in)
           <= coalesce(max(t.restored_rows) filter (where t.xmin::text::bigint = t.noted_in), -1)
    into is_noted
    from milepost.timeline t;
    return is_noted;
end
$$;

-- The current epoch; no row between the end of one and the begin of the next. A restore of the data brings back the row of the epoch.
create or replace view milepost.running_epoch as
select e.id, e.history_floor, e.batch_history_floor
from milepost.epoch e
where e.one and e.started_at = pg_postmaster_start_time() and e.relation = 'milepost.epoch'::regclass::oid
  and milepost.is_noted();

-- The rates that milepost_core::limit::Rate accepts, with some leeway for rounding. A rate that cannot be computed with would stop the claims of
-- all kinds.
alter table milepost.kind_limit add constraint kind_limit_rate check (per_second between 3e-7 and 10001) not valid;
alter table milepost.group_limit add constraint group_limit_rate check (per_second between 3e-7 and 10001) not valid;
