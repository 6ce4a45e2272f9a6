-- Begins file $2 (its name for people) of run $1.
insert into milepost.bulk_file (run, name) values ($1, $2)
