-- Imports files whose rows are the targets of bulk jobs.
insert into milepost.bulk_file (run, name, rows, started_at, touched_at)
select * from unnest($1::uuid[], $2::text[], $3::bigint[], $4::timestamptz[], $5::timestamptz[])
