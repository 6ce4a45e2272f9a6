-- How many channels world $1 has.
select count(*) from milepost_demo_channel where world = $1
