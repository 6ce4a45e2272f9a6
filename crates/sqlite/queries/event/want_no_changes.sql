-- Has a subscription want no changes. ?1 its name
DELETE FROM milepost_change_source WHERE subscription = ?1
