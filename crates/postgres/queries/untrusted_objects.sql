-- The first object in schema milepost, itself included, that a migration must not touch: it belongs to a role that is neither this role, nor a
-- superuser, nor (unless this role is one) a role that this role is a member of; or it exists although no migration was recorded. Columns: what it
-- is, its owner if that is the reason, else null. $1 whether migrations were recorded
with own as (
    select r.oid, r.rolname from pg_catalog.pg_roles r
    where r.rolname = current_user or r.rolsuper
       or (not (select s.rolsuper from pg_catalog.pg_roles s where s.rolname = current_user) and pg_catalog.pg_has_role(r.oid, 'usage'))
),
object as (
    select 0 as rank, 'the schema milepost' as what, n.nspowner as owner, true as is_expected
    from pg_catalog.pg_namespace n where n.nspname = 'milepost'
    union all
    select 1, 'the trigger ' || t.tgname || ' of milepost.schema_migration', null, false
    from pg_catalog.pg_trigger t where t.tgrelid = pg_catalog.to_regclass('milepost.schema_migration') and not t.tgisinternal
    union all
    select 1, 'the rule ' || r.rulename || ' of milepost.schema_migration', null, false
    from pg_catalog.pg_rewrite r where r.ev_class = pg_catalog.to_regclass('milepost.schema_migration')
    union all
    select 2, case c.relkind when 'v' then 'the view' when 'S' then 'the sequence' when 'i' then 'the index' else 'the table' end
              || ' milepost.' || c.relname, c.relowner, $1 or c.relname = 'schema_migration' or c.relkind = 'i'
    from pg_catalog.pg_class c where c.relnamespace = pg_catalog.to_regnamespace('milepost') and c.relkind <> 'c'
    union all
    select 3, 'the type milepost.' || t.typname, t.typowner, $1
    from pg_catalog.pg_type t
    where t.typnamespace = pg_catalog.to_regnamespace('milepost') and t.typrelid = 0 and t.typelem = 0
    union all
    select 4, 'the function milepost.' || p.proname, p.proowner, $1
    from pg_catalog.pg_proc p where p.pronamespace = pg_catalog.to_regnamespace('milepost')
)
select o.what, case when o.owner not in (select own.oid from own) then pg_catalog.pg_get_userbyid(o.owner) end as owner
from object o
where not o.is_expected or o.owner not in (select own.oid from own)
order by o.rank, o.what limit 1
