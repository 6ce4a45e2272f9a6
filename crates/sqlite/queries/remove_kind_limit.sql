-- Removes the limit of a kind, an operator's only for an operator. ?1 kind, ?2 who says so
DELETE FROM milepost_kind_limit WHERE kind = ?1 AND (source = ?2 OR ?2 = 'operator')
