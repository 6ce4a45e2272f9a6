-- Forgets a subscription.
delete from milepost.subscription where name = $1
