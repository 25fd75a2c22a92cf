-- A job ends: the final status with its outcome, the tombstone, the webhook in the outbox and RQ's own
-- bookkeeping, or nothing. A final status never changes, and only the execution that runs may end a job.
-- A worker takes its next job in the same step, whatever the verdict: it is free now.
-- KEYS  see end_job.lua; of a worker also 8 .. 12, see desk.lua
-- ARGV  see end_job.lua; of a worker also, from a = 16+n on:  a template of RQ's commands ('[]' for none)
--       a+1 when the execution began, s  a+2 .. see desk.lua
-- Returns {'yes', or 'done' where this execution has ended it before, or 'fenced', what `job_at_desk` gives}
local now = now_ms()
local verdict = may_end(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], now)
if verdict == 'done' then
    -- Somebody else may have ended it in this execution's name, since its lease was over: that is no repeat.
    local ended = redis.call('HMGET', KEYS[1], 'status', 'outcome')
    verdict = ended[1] == ARGV[4] and ended[2] == ARGV[5] and 'done' or 'fenced'
end
if verdict == 'yes' then
    end_job(now)
end
if not KEYS[8] then
    return {verdict, false}
end
local books = 16 + ARGV[15]
if verdict == 'yes' then
    local at_s, at = ARGV[books + 7], ARGV[books + 8]
    keep_books(ARGV[books], {job = ARGV[2], execution = ARGV[1], began = ARGV[books + 1], now = at_s, at = at}, at_s)
end
return {verdict, job_at_desk(8, books + 2, now)}
