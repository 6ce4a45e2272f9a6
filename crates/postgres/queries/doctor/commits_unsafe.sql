-- Whether commits are acknowledged before they are durable, unless somebody asks for it.
select count(*) over () as count, name as what, 'is off, by ' || source as detail
from pg_catalog.pg_settings
where name = 'synchronous_commit' and setting = 'off'
limit 10
