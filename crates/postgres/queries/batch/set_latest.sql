-- Makes version $2 of DAG $1 the latest.
insert into milepost.dag as g (name, latest)
select $1, v.id from milepost.dag_version v where v.name = $1 and v.version = $2
on conflict (name) do update set latest = excluded.latest, updated_at = now() where g.latest <> excluded.latest
