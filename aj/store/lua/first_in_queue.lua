-- Since when the first job of ours in a queue waits, in ms, or -1. Another deployment may share the queue, so its first
-- entry need not be ours; `jobs` is the prefix of our job hashes.
local LOOKED_AT = 16

local function first_waits_since(queue, jobs)
    for _, job_id in ipairs(redis.call('LRANGE', queue, 0, LOOKED_AT - 1)) do
        local job = redis.pcall('HMGET', jobs .. job_id, 'queued_ms', 'created_ms')
        if not job.err and job[2] then
            return tonumber(job[1] or job[2]) or -1
        end
    end
    return -1
end
