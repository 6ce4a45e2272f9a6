-- Publishes events again.
select milepost.replay($1, $2, $3, $4, $5)
