-- Sets the first event of an aggregate that consumer $1 receives: $2 the aggregate's type, $3 its id, $4 the sequence
-- number.
select milepost.expect_from($1, $2, $3, $4)
