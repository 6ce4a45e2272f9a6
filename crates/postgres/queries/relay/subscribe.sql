-- Creates a subscription.
select milepost.subscribe($1, $2)
