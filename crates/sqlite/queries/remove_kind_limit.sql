-- Removes the limit of a kind; only an operator can remove an operator's. ?1 kind, ?2 source
DELETE FROM milepost_kind_limit WHERE kind = ?1 AND (source = ?2 OR ?2 = 'operator')
