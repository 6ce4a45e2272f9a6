-- Imports the latest versions of DAGs.
insert into milepost.dag (name, latest, updated_at)
select name, latest, updated_at
from unnest($1::text[], $2::bigint[], $3::timestamptz[])
    as r(name, latest, updated_at)
