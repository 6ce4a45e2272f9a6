-- How up to $2 jobs ended that come after $1.
select id, state::text as state, token from milepost.ended where id > $1 order by id limit $2
