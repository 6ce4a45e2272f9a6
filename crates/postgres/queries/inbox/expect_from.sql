-- Says from which event on consumer $1 takes in those of an aggregate: $2 its type, $3 its id, $4 the sequence.
select milepost.expect_from($1, $2, $3, $4)
