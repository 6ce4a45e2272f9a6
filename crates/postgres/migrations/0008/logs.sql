-- Timelines belong to a log (milepost.log_identity(): the server, and the tables in it), not to a server alone: a store can return to a server
-- by a dump after it was on another one with more timelines.
update milepost.timeline t
set server = t.server # 'milepost.event'::regclass::oid::bigint
from pg_control_system() c
where t.server = c.system_identifier;

-- token_offset: random, so that two restores of one dump, and two standbys of one server, have different run tokens; null for timelines that
-- were noted before this migration, which use the start time of the server.
alter table milepost.timeline add column token_offset int;
