-- Says what consumer $1 wants: $2 how long events wait (ms), $3 how many, $4 what happens then, $5 whether it begins anywhere.
select milepost.put_consumer($1, $2, $3, $4, $5)::text
