-- A worker takes the job that it has moved out of the queue.
-- KEYS, ARGV: see desk.lua
-- Returns what `job_at_desk` gives: false where the entry is not plainly a job to be run
return job_at_desk(1, 1, now_ms())
