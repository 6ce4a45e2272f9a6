-- Returns the rate of a kind. ?1 kind
SELECT per_second, burst, full_at_us FROM milepost_kind_limit WHERE kind = ?1
