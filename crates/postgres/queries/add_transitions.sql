-- Adds transitions that the database does not have: $1 states, $2 verbs, $3 next states, parallel arrays.
insert into milepost.transition (from_state, verb, to_state)
select t.from_state::milepost.job_state, t.verb::milepost.verb, t.to_state::milepost.job_state
from unnest($1::text[], $2::text[], $3::text[]) t(from_state, verb, to_state)
on conflict do nothing
