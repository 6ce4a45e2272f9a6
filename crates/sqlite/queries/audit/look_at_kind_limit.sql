-- Returns the limit of kind ?1.
SELECT json_object('per_second', per_second, 'burst', burst, 'source', source) FROM milepost_kind_limit WHERE kind = ?1
