-- The number of channels in world $1.
select count(*) from milepost_demo_channel where world = $1
