-- A job ends: the final status with its outcome, the tombstone, the webhook in the outbox and RQ's own
-- bookkeeping, or nothing. A final status never changes, and only the execution that runs may end a job.
-- KEYS, ARGV: see end_job.lua; then RQ's commands
-- Returns 'yes', 'done' where this execution has ended it before, or 'fenced'
local verdict = may_end(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3])
if verdict == 'done' then
    -- Somebody else may have ended it, since its lease was over: what is no repeat brings another end.
    local ended = redis.call('HMGET', KEYS[1], 'status', 'outcome')
    return ended[1] == ARGV[4] and ended[2] == ARGV[5] and 'done' or 'fenced'
end
if verdict == 'yes' then
    end_job()
end
return verdict
