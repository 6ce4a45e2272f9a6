-- Makes due task $2 of batch $1 a $3 (bulk, items, batch) of name $4 with $5 (JSON text). Answers why it cannot be; null: it is.
select milepost.release_other($1, $2, $3, $4, $5::text::jsonb)
