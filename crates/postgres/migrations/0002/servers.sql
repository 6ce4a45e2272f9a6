-- Timelines belong to a server. pg_upgrade and the restore of a dump create a new one, whose timelines begin with 1 again; run tokens must
-- exceed those of the earlier servers.
--
-- server: its system identifier. timelines_before: the number of timelines of earlier servers; the same for all timelines of a server.
alter table milepost.timeline
    add column server bigint,
    add column timelines_before int not null default 0;
update milepost.timeline t set server = c.system_identifier from pg_control_system() c;
alter table milepost.timeline alter column server set not null;
alter table milepost.timeline drop constraint timeline_pkey;
alter table milepost.timeline add primary key (server, id);
