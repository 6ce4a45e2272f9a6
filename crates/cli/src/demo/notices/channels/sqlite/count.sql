-- How many channels world ?1 has.
SELECT count(*) FROM milepost_demo_channel WHERE world = ?1
