-- Removes the limit of a kind. ?1 kind
DELETE FROM milepost_kind_limit WHERE kind = ?1
