-- Imports the kinds and DAGs whose changes subscriptions select. Recording starts when the move is completed.
insert into milepost.change_source (what, name, subscription)
select * from unnest($1::text[], $2::text[], $3::text[])
