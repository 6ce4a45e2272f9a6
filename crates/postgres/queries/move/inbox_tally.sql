-- Imports numbers of duplicates.
insert into milepost.inbox_tally (consumer, duplicates) select * from unnest($1::text[], $2::bigint[])
