-- Why a subscription is paused.
select paused_why from milepost.subscription where name = $1
