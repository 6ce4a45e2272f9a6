-- Removes all requests for changes of a subscription. ?1 its name
DELETE FROM milepost_change_source WHERE subscription = ?1
