-- Where up to $2 live jobs stand that come after $1.
select id, state::text as state, token from milepost.live where id > $1 order by id limit $2
