-- Stores the settings of consumer $1: $2 how long events wait (ms), $3 how many wait, $4 policy after that, $5 whether it
-- begins anywhere.
select milepost.put_consumer($1, $2, $3, $4, $5)::text
