-- The position of the log that was drawn last, and how many processes publish.
select milepost.last_pos() as drawn, (select count(*) from milepost.publisher where lease_until > clock_timestamp()) as publishers
