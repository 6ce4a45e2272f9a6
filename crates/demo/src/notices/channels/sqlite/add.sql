-- Adds channel ?2 at the point (?3, ?4, ?5) to world ?1; an existing one is unchanged.
INSERT INTO milepost_demo_channel (world, id, x, y, z) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING
