-- Queued becomes running. `job` holds, of the job's hash, what STARTS_FROM names. Whether it may start, `may_start` says:
-- not before the delay of its next attempt is over, and never twice under one execution.
local STARTS_FROM = {'status', 'execution', 'attempt', 'queue', 'number', 'queued_ms', 'created_ms', 'task'}

local function may_start(job, job_id, execution, delayed)
    return job[1] == 'queued' and job[2] ~= execution and not redis.call('ZSCORE', delayed, job_id)
end

local function start_job(job_key, job_id, job, execution, now, leases, lease_ms)
    local attempt = (job[3] or 0) + 1
    redis.call('HSET', job_key, 'status', 'running', 'execution', execution, 'started_ms', now, 'attempt', attempt)
    redis.call('ZADD', leases, now + lease_ms, job_id)
    note_start(job_key, job[4], job[5])
    observe(job_key, 'wait', job[8], now - (job[6] or job[7]))
    tell_change(job_key)
end
