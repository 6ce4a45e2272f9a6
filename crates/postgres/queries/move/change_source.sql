-- Brings whose changes subscriptions want. The end of the move has them recorded.
insert into milepost.change_source (what, name, subscription)
select * from unnest($1::text[], $2::text[], $3::text[])
