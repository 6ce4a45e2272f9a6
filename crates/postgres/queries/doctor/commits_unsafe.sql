-- Whether commits are acknowledged before they are durable, unless a session requests durability, as that of this query does.
select count(*) over () as count, name as what, 'is off for sessions that do not set it' as detail
from pg_catalog.pg_settings
where name = 'synchronous_commit' and reset_val = 'off'
limit 10
