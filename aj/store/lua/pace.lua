-- What is known of how long jobs take and how far their queues have come, until 30 days after its last use.
-- The keys are made from the job's key, since the names of its task and queue stand in its hash:
--   <prefix>:pace:task:<task>    string: how long the task's last 64 runs took, two bytes each, the newest first
--   <prefix>:pace:queue:<queue>  string: the same for the jobs of a queue
--   <prefix>:pace:line:<queue>   hash: `given`, the number of the last job that joined the queue, and `started`, the
--                                highest number of a job that has started
-- A job keeps its number in its hash, and how many runs of its task were known when it was submitted. A job of an
-- older version has no queue there, and is passed over. Nothing depends on it but estimates, so what cannot be read, or is
-- under a key of another type, counts as not known, and keeps nobody from submitting, running or seeing a job.
local PACE_LIFE_S, KEPT_BYTES = 30 * 86400, 128

local function pace_key(job_key, kind, name)
    return prefix_of(job_key) .. ':pace:' .. kind .. ':' .. name
end

-- A reply that is a text or a number; false where there is none, or an error.
local function told(...)
    local reply = redis.pcall(...)
    return type(reply) ~= 'table' and reply
end

local function whole(text)
    return text and tonumber(string.match(text, '^%d+$'))
end

local function started_of(line)
    return whole(told('HGET', line, 'started')) or 0
end

-- The number of a job that joins the end of a queue. A line that cannot be counted on begins anew, with more than it can
-- have come to, so that no job that waits is behind its back. `SET` is refused, before anything is lost, where it was the
-- store that refused.
local function number_in_line(job_key, queue)
    local line = pace_key(job_key, 'line', queue)
    local number = told('HINCRBY', line, 'given', 1)
    if not number then
        redis.call('SET', line, '')
        redis.call('DEL', line)
        number = redis.call('HINCRBY', line, 'given', now_ms())
    end
    redis.call('EXPIRE', line, PACE_LIFE_S)
    return number
end

local function known_runs(job_key, task)
    return (told('STRLEN', pace_key(job_key, 'task', task)) or 0) / 2
end

-- A job joins its queue again. It notes since when it waits, which is not since its submission.
local function rejoin_line(job_key)
    local job = redis.call('HMGET', job_key, 'queue', 'task')
    if job[1] then
        redis.call('HSET', job_key, 'number', number_in_line(job_key, job[1]))
        redis.call('HSETNX', job_key, 'known', known_runs(job_key, job[2]))
    end
    redis.call('HSET', job_key, 'queued_ms', now_ms())
end

-- A job starts that has this number in its queue. One that was put back to the head does not take the queue back with it.
local function note_start(job_key, queue, number)
    if queue and number then
        local line = pace_key(job_key, 'line', queue)
        if started_of(line) < (whole(number) or 0) then
            redis.pcall('HSET', line, 'started', number)
            redis.call('EXPIRE', line, PACE_LIFE_S)
        end
    end
end

-- A run took so long; `length` is two bytes, or empty where it tells nothing of other runs.
local function note_length(job_key, task, queue, length)
    if length == '' or not queue then
        return
    end
    for _, key in ipairs({pace_key(job_key, 'task', task), pace_key(job_key, 'queue', queue)}) do
        local known = told('GET', key) or ''
        redis.call('SET', key, length .. string.sub(known, 1, KEPT_BYTES - 2), 'EX', PACE_LIFE_S)
    end
end

-- What a caller may expect of an active job: {jobs before it in its queue or -1, ms until its next attempt is due,
-- living workers of its queue, jobs of its queue that run, runs of its task that were known at first or -1, lengths of
-- its queue, lengths of its task}. `job` is {status, queue, number, task, known} from its hash. The number of a cancelled
-- job counts until a later job starts; the length of the queue bounds what that can be. In `wip`, RQ's registry of what
-- runs, each entry has a score, in seconds, after which nobody vouches for it.
local function outlook(job_key, job_id, job, queue_list, workers, wip, delayed)
    local ahead, due_in_ms, number = -1, 0, whole(job[3])
    if job[1] == 'queued' and number then
        local before = number - started_of(pace_key(job_key, 'line', job[2]))
        ahead = math.max(0, math.min(before, told('LLEN', queue_list) or before) - 1)
    elseif job[1] == 'queued' then
        due_in_ms = math.max(0, (told('ZSCORE', delayed, job_id) or 0) - now_ms())
    end
    return {
        ahead, due_in_ms, living_workers(workers, prefix_of(job_key)),
        told('ZCOUNT', wip, now_ms() / 1000, '+inf') or 0, tonumber(job[5] or -1) or -1,
        told('GET', pace_key(job_key, 'queue', job[2])) or '',
        told('GET', pace_key(job_key, 'task', job[4])) or '',
    }
end
