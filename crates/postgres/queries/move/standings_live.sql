-- The states of up to $2 live jobs with ids above $1.
select id, state::text as state, token from milepost.live where id > $1 order by id limit $2
