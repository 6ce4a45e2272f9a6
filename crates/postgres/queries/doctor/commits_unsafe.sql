-- Whether commits are acknowledged before they are durable, unless a session requests durability.
select count(*) over () as count, name as what, 'is off; source: ' || source as detail
from pg_catalog.pg_settings
where name = 'synchronous_commit' and setting = 'off'
limit 10
