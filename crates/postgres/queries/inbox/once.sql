-- Records that consumer $1 processes event $2, and returns whether it is the first time.
select milepost.once($1, $2)
