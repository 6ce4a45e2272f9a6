-- Functions with their owner's rights that everyone can execute: their rights were not restored with them.
select count(*) over () as count, o.what, o.detail
from (
    select p.oid::regprocedure::text as what, format('owned by %s, executable by PUBLIC', pg_catalog.pg_get_userbyid(p.proowner)) as detail
    from pg_catalog.pg_proc p
    where p.pronamespace = 'milepost'::regnamespace and p.prosecdef
      -- Without an entry, the default applies, which permits PUBLIC to execute it. 0 is PUBLIC.
      and (p.proacl is null or exists (
          select from pg_catalog.aclexplode(p.proacl) a where a.grantee = 0 and a.privilege_type = 'EXECUTE'
      ))
) o
order by o.what
limit 10
