-- How many RQ workers of this deployment live and serve a queue. Others may serve it too: those of another deployment,
-- and plain ones of RQ, which cannot run our jobs. Each of ours says whose it is, in RQ's own hash of the worker,
-- and that hash is gone half a minute after its last sign of life. What is no hash is no worker.
local function living_workers(set, prefix)
    local count, names = 0, redis.pcall('SMEMBERS', set)
    for _, name in ipairs(names.err and {} or names) do
        if redis.pcall('HGET', name, 'aj_prefix') == prefix then
            count = count + 1
        end
    end
    return count
end
