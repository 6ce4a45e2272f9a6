-- Records that a publisher's sink does not accept events, and the reason ($2; null: that it does).
update milepost.publisher set down_since = case when $2::text is not null then coalesce(down_since, clock_timestamp()) end, down_why = $2
where id = $1
