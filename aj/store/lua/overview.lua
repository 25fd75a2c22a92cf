-- What the dashboard's first page shows of a whole deployment. Writes nothing.
-- KEYS  1 leases of running jobs  2 delayed jobs  3 pending deliveries  4 RQ's mark that workers are suspended
-- ARGV  1 prefix of job hashes  2 prefix of RQ's queue lists  3 prefix of RQ's sets of workers  4 our prefix
--       5 prefix of RQ's jobs  6 most workers to tell of, and most running jobs  then queue names
-- Keys of jobs, queues and workers are made from the prefixes, since the names of jobs and workers stand in the store.
-- Returns {now in ms, running, delayed, pending, since when the oldest is pending in ms or -1,
--          whether workers are suspended (1 or 0), {field, count, ...} of this hour's tally, the same of the last hour's,
--          {{job id, name of its worker, whether its lease is over, task, started in ms, attempt, progress}, ...}
--          of running jobs, those whose lease ends first before the others,
--          {queue, jobs in it, since when its first one waits in ms or -1, living workers of ours,
--           {{name, host, pid, birth, last sign of life, state, jobs that succeeded, that failed}, ...}}
--          for each queue}
local ABOUT_WORKER = {'aj_prefix', 'hostname', 'pid', 'birth', 'last_heartbeat', 'state', 'successful_job_count', 'failed_job_count'}
local now, most = now_ms(), tonumber(ARGV[6])

local function living(set)
    local count, told = 0, {}
    for _, name in ipairs(redis.call('SMEMBERS', set)) do
        local worker = redis.pcall('HMGET', name, unpack(ABOUT_WORKER))
        if not worker.err and worker[1] == ARGV[4] then
            count = count + 1
            if count <= most then
                worker[1] = name
                table.insert(told, worker)
            end
        end
    end
    return count, told
end

local function running()
    local told = {}
    local leases = redis.call('ZRANGE', KEYS[1], 0, most - 1, 'WITHSCORES')
    for at = 1, #leases, 2 do
        local job_id, is_over = leases[at], tonumber(leases[at + 1]) < now and 1 or 0
        local job = redis.pcall('HMGET', ARGV[1] .. job_id, 'task', 'started_ms', 'attempt', 'progress')
        if not job.err and job[1] then
            local worker = redis.pcall('HGET', ARGV[5] .. job_id, 'worker_name')
            table.insert(told, {job_id, type(worker) == 'string' and worker or false, is_over, unpack(job, 1, 4)})
        end
    end
    return told
end

-- What is no tally counts as none.
local function tally_of(hour)
    local tally = redis.pcall('HGETALL', tally_key(ARGV[4], hour))
    return tally.err and {} or tally
end

local pending = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
local hour = math.floor(now / 3600000)
local reply = {
    now, redis.call('ZCARD', KEYS[1]), redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[3]),
    tonumber(pending[2] or -1), redis.call('EXISTS', KEYS[4]), tally_of(hour), tally_of(hour - 1), running(),
}
for at = 7, #ARGV do
    local queue = ARGV[2] .. ARGV[at]
    local count, workers = living(ARGV[3] .. ARGV[at])
    table.insert(reply, {ARGV[at], redis.call('LLEN', queue), first_waits_since(queue, ARGV[1]), count, workers})
end
return reply
