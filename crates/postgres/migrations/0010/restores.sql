-- noted_in: the transaction that noted the timeline. In a restored dump, also of the data only, the rows were written by another one (xmin), so
-- that the store is known to be restored. So whoever updates rows of this table, or has them rewritten, sets noted_in again.
-- log_salt: random in a restored store, so that its log is another one than that of the dump, even if server and tables have the same numbers, as
-- in copies of one data folder; see milepost.log_identity().
alter table milepost.timeline add column noted_in xid8, add column log_salt bigint not null default 0;
update milepost.timeline set noted_in = pg_current_xact_id();
alter table milepost.timeline alter column noted_in set default pg_current_xact_id(), alter column noted_in set not null;
alter table milepost.timeline drop constraint timeline_pkey;
alter table milepost.timeline add primary key (server, id, noted_in);

-- The rates that milepost_core::limit::Rate accepts, with some leeway for rounding. A rate that cannot be computed with would stop the claims of
-- all kinds.
alter table milepost.kind_limit add constraint kind_limit_rate check (per_second between 3e-7 and 10001) not valid;
alter table milepost.group_limit add constraint group_limit_rate check (per_second between 3e-7 and 10001) not valid;
