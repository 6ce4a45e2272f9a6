-- Stages rows $3 (JSON texts) of run $1, numbered from $2.
insert into milepost.bulk_target (run, n, row)
select $1, $2 + r.ord - 1, r.row::jsonb
from unnest($3::text[]) with ordinality r(row, ord)
