-- Returns the rates of all kinds that have one.
SELECT kind, per_second, burst, full_at_us FROM milepost_kind_limit
