-- The timeline of the server, if nobody knew it before.
select milepost.note_timeline()
