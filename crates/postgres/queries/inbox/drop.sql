-- Drops dead letters $1 for good; $2 who says so.
select milepost.drop_dead($1, $2)
