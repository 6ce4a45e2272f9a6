-- Objects of schema milepost with their names, and objects of other schemas that depend on them (without a name).
with own as (
    select 'pg_class'::regclass::oid as classid, c.oid as objid, c.relname::text as name
    from pg_class c
    where c.relnamespace = to_regnamespace('milepost') and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S', 'c')
    union all
    select 'pg_proc'::regclass, p.oid, p.proname
    from pg_proc p
    where p.pronamespace = to_regnamespace('milepost')
    union all
    select 'pg_type'::regclass, t.oid, t.typname
    from pg_type t
    where t.typnamespace = to_regnamespace('milepost')
)
select own.name, pg_describe_object(own.classid, own.objid, 0) as object
from own
-- Leaves out objects that belong to another object: identity sequences, the types of tables and arrays.
where not exists (
    select from pg_depend d
    where (d.classid, d.objid) = (own.classid, own.objid) and d.deptype in ('a', 'i')
      and d.refclassid <> 'pg_namespace'::regclass
)
union all
select distinct null, pg_describe_object(d.classid, d.objid, d.objsubid)
from own
join pg_depend d on (d.refclassid, d.refobjid) = (own.classid, own.objid)
cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) as dependent
where d.deptype in ('n', 'a')
  and dependent.schema is distinct from 'milepost'
  and dependent.identity !~ '(^|(^| )(on|for|of) )milepost\.'
