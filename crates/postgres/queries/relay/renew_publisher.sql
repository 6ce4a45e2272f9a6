-- Keeps what a publisher holds for another lease, of $2 ms. Nothing is changed when it was silent for so long that it was forgotten.
update milepost.publisher set lease_until = clock_timestamp() + $2 * interval '1 ms' where id = $1
