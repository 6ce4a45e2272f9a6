-- The last position drawn from the log's sequence, and the number of active publishers.
select milepost.last_pos() as drawn, (select count(*) from milepost.publisher where lease_until > clock_timestamp()) as publishers
