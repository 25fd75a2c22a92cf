-- Whether an execution may end an attempt now: 'yes', 'done' where it has done so before, or 'fenced'.
-- An attempt that somebody else ends, because its lease is over, ends only while the lease is still over.
local function may_end(job_key, leases, execution, job_id, only_lapsed, now)
    local job = redis.call('HMGET', job_key, 'status', 'execution')
    local is_over = job[1] == 'succeeded' or job[1] == 'failed'
    if job[2] ~= (is_over and mark_of(execution) or execution) then
        return 'fenced'
    end
    if job[1] ~= 'running' then
        return 'done'
    end
    local lease = only_lapsed == '1' and redis.call('ZSCORE', leases, job_id)
    return lease and tonumber(lease) > now and 'fenced' or 'yes'
end
