-- Counts what happens, for `GET /metrics`. Processes on any host add to one hash, so any of them can tell all of it.
--   <prefix>:metrics        hash: '<what> <label> ...' → how often, or how many ms in all, until 30 days after a submission
--   <prefix>:tally:<hour>   hash: 's' or 'f' and the minute of that hour since the epoch → jobs that succeeded or failed
-- Names of tasks are the only labels that are not words of ours; there are as many as tasks.
local METRICS_LIFE_S, TALLY_LIFE_S = 30 * 86400, 2 * 3600
local BOUNDS_MS = {5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000}

local function metrics_key(job_key)
    return prefix_of(job_key) .. ':metrics'
end

local function count(job_key, what)
    redis.call('HINCRBY', metrics_key(job_key), what, 1)
end

local function tally_key(prefix, hour)
    return string.format('%s:tally:%d', prefix, hour)
end

-- A job ended so: one command, and one more for the first of each minute.
local function tally(job_key, status, now)
    local minute = math.floor(now / 60000)
    local key = tally_key(prefix_of(job_key), math.floor(minute / 60))
    if redis.call('HINCRBY', key, string.sub(status, 1, 1) .. minute % 60, 1) == 1 then
        redis.call('EXPIRE', key, TALLY_LIFE_S)
    end
end

-- Something took so long: counted below the least bound that it does not exceed.
local function observe(job_key, what, task, took_ms)
    local below = 'inf'
    for _, bound in ipairs(BOUNDS_MS) do
        if took_ms <= bound then
            below = bound
            break
        end
    end
    count(job_key, what .. ' ' .. below .. ' ' .. task)
    redis.call('HINCRBY', metrics_key(job_key), what .. ' sum ' .. task, string.format('%d', math.max(0, took_ms)))
end
