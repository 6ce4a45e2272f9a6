select milepost.subscribe($1, $2)
