-- A worker's desk takes a job: queued becomes running, in RQ's books as well, in one step. It takes the head of its
-- queue, or what its worker has moved to the intermediate list after a wait. What is not plainly a job to be run, as one
-- of another deployment or one that is broken, it leaves where it stands.
-- KEYS from `key`  queue list, intermediate list, leases of running jobs, delayed jobs, RQ's hash of the worker
-- ARGV from `arg`  +0 prefix of job hashes  +1 prefix of RQ's jobs  +2 templates of RQ's commands for a job that is taken
--                  +3 and for a worker that has none  +4 lease, ms  +5 time of RQ's books, s  +6 the same in RFC 3339
--                  +7 execution id  +8 id of the job that was moved ('' for the head of the queue)
--                  +9 what is asked for: 'job', 'nothing', or where that was asked before: 'same or job', 'same'
--                  +10 number of the wish: a worker counts its wishes
-- Keys of jobs are made from the prefixes, since their names stand in the queue.
-- Gives {job id, now in ms, {field, value, ...} of the job hash, {data, timeout, origin} of RQ's job}, or false
local function job_at_desk(key, arg, now)
    local jobs, rq_jobs, execution, moved_id = ARGV[arg], ARGV[arg + 1], ARGV[arg + 7], ARGV[arg + 8]
    local asked_for, at_s, number = ARGV[arg + 9], ARGV[arg + 5], tonumber(ARGV[arg + 10])
    local is_repeat = string.find(asked_for, 'same', 1, true)

    -- What the network has held back for so long that its sender has asked again comes to nobody who waits for it.
    if is_repeat then
        redis.call('HSET', KEYS[key + 4], 'aj_repeated', number)
    elseif number <= tonumber(redis.call('HGET', KEYS[key + 4], 'aj_repeated') or 0) then
        return false
    end

    -- The job of this execution, whose answer was lost. Its lease counts from the answer that arrives.
    local function same()
        for _, job_id in ipairs(redis.call('ZRANGE', KEYS[key + 2], 0, -1)) do
            if redis.pcall('HGET', jobs .. job_id, 'execution') == execution then
                redis.call('ZADD', KEYS[key + 2], now + ARGV[arg + 4], job_id)
                return job_id
            end
        end
    end

    local function rq_job_of(job_id)
        return redis.pcall('HMGET', rq_jobs .. job_id, 'data', 'timeout', 'origin')
    end

    local function take(job_id)
        local job, rq_job = redis.pcall('HMGET', jobs .. job_id, unpack(STARTS_FROM)), rq_job_of(job_id)
        if job.err or not rq_job[1] or not may_start(job, job_id, execution, KEYS[key + 3]) then
            return
        end
        if moved_id == '' then
            redis.call('LPOP', KEYS[key])
        else
            redis.call('LREM', KEYS[key + 1], 1, job_id)
        end
        start_job(jobs .. job_id, job_id, job, execution, now, KEYS[key + 2], ARGV[arg + 4])
        local filled = {job = job_id, execution = execution, now = at_s, at = ARGV[arg + 6]}
        keep_books(ARGV[arg + 2], filled, at_s)
        return job_id, rq_job
    end

    local taken, rq_job
    if is_repeat then
        taken = same()
        rq_job = taken and rq_job_of(taken)
    end
    if not taken and string.find(asked_for, 'job', 1, true) then
        local next_id = moved_id ~= '' and moved_id or redis.call('LINDEX', KEYS[key], 0)
        if next_id then
            taken, rq_job = take(next_id)
        end
    end
    if not taken then
        keep_books(ARGV[arg + 3], {}, 0)
        return false
    end
    return {taken, now, redis.call('HGETALL', jobs .. taken), rq_job.err and {} or rq_job}
end
