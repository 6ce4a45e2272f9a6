-- Imports rows of such files. $3 JSON texts
insert into milepost.bulk_target (run, n, row)
select run, n, row::jsonb from unnest($1::uuid[], $2::bigint[], $3::text[]) as r(run, n, row)
