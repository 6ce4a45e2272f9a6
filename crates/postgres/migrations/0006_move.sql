-- Moves: what another store fills, or has filled, this one with. While a move is under way, triggers keep everybody
-- else from the other tables; they are made with its row and go with its end.
create table milepost.arrival (
    move_id uuid primary key,
    source text not null,
    began_at timestamptz not null default now(),
    completed_at timestamptz
);

-- How far each part of a move is, written in the transaction that brings the rows. position: the key of the last
-- row, as JSON.
create table milepost.arrival_part (
    move_id uuid not null,
    part text not null,
    position text not null,
    rows bigint not null,
    done boolean not null,
    primary key (move_id, part)
);
