-- Returns the position up to which a type of retention has read history. ?1 type
SELECT pos FROM milepost_retention WHERE sort = ?1
