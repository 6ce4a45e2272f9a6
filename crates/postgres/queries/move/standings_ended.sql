-- The final states of up to $2 jobs with ids above $1.
select id, state::text as state, token from milepost.ended where id > $1 order by id limit $2
