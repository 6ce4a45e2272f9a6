-- Those of the verbs $1 that the database does not have.
select v.name from unnest($1::text[]) v(name)
where v.name not in (select e.enumlabel::text from pg_catalog.pg_enum e where e.enumtypid = 'milepost.verb'::regtype)
