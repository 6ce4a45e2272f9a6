-- The number of notifications of each place in run $1.
select place_id, count(*) from milepost_demo_notification where run = $1 group by place_id
