-- Queued becomes running. `job` is of the job's hash: status, execution, queue, number, when it was queued and created,
-- task. Whether it may start, `may_start` says: not before the delay of its next attempt is over.
local STARTS_FROM = {'status', 'execution', 'queue', 'number', 'queued_ms', 'created_ms', 'task'}

local function may_start(job, job_id, execution, delayed)
    return job[1] == 'queued' and job[2] ~= execution and not redis.call('ZSCORE', delayed, job_id)
end

local function start_job(job_key, job_id, job, execution, now, leases, lease_ms)
    redis.call('HINCRBY', job_key, 'attempt', 1)
    redis.call('HSET', job_key, 'status', 'running', 'execution', execution, 'started_ms', now)
    redis.call('ZADD', leases, now + tonumber(lease_ms), job_id)
    note_start(job_key, job[3], job[4])
    observe(job_key, 'wait', job[7], now - tonumber(job[5] or job[6]))
    tell_change(job_key)
end
