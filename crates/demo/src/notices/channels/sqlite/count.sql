-- The number of channels in world ?1.
SELECT count(*) FROM milepost_demo_channel WHERE world = ?1
