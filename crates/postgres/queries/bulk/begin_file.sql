-- Creates file $2 (name for display) of run $1.
insert into milepost.bulk_file (run, name) values ($1, $2)
