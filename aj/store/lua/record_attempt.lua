-- Records an attempt to deliver, and when the next one is due if there is to be one. Needs `count`.
-- `outbox` is the prefix of the outbox keys, `jobs` that of job hashes; `hosts` is the set of hosts with work, `pending`
-- that of pending deliveries. `at` is where the attempt's words begin in ARGV:
--   job id, host, token of the claim, state after the attempt, HTTP status ('' for no answer), attempts to show,
--   delay before the next attempt in ms, the attempt for the log as JSON
-- Where another claim has taken over meanwhile nothing is recorded but that it arrived. The host's turn is not noted:
-- whoever calls this has `schedule_host` called once for each host.
local ATTEMPT_WORDS = 8
-- How long a host that answered may hold its whole share, in seconds; one that did not, or is new, gets one delivery.
local ANSWERS_FOR_S = 600

local function record_attempt(outbox, jobs, pending, at)
    local job, host, token, state, status, number, delay, entry = unpack(ARGV, at, at + ATTEMPT_WORDS - 1)
    local delivery, job_key, due = outbox .. ':job:' .. job, jobs .. job, outbox .. ':due:' .. host
    local row = redis.call('HMGET', delivery, 'token', 'state', 'log')
    if row[2] or not row[1] or (row[1] ~= token and state ~= 'delivered') then
        return
    end
    redis.call('ZREM', outbox .. ':busy:' .. host, job)
    count(job_key, 'attempts ' .. (status == '' and 'none' or string.sub(status, 1, 1) .. 'xx'))
    local log = row[3]
    redis.call('HSET', delivery, 'log', log and #log < 30000 and log .. ', ' .. entry or entry)
    local fields = {'callback_state', state, 'callback_attempts', number}
    if status == '' then
        redis.call('DEL', outbox .. ':answers:' .. host)
    else
        redis.call('SET', outbox .. ':answers:' .. host, 1, 'EX', ANSWERS_FOR_S)
        table.insert(fields, 'callback_last_status')
        table.insert(fields, status)
    end
    local job_exists = redis.call('EXISTS', job_key) == 1
    if state == 'pending' then
        local next_at = now_ms() + tonumber(delay)
        redis.call('ZADD', due, next_at, job)
        table.insert(fields, 'callback_next_ms')
        table.insert(fields, next_at)
    else
        redis.call('ZREM', due, job)
        redis.call('ZREM', pending, job)
        count(job_key, 'deliveries ' .. state)
        redis.call('HSET', delivery, 'state', state)
        if job_exists then
            redis.call('HDEL', job_key, 'callback_next_ms')
            redis.call('PEXPIRE', delivery, math.max(1, redis.call('PTTL', job_key)))
        else
            redis.call('DEL', delivery)
        end
    end
    if job_exists then
        redis.call('HSET', job_key, unpack(fields))
        tell_change(job_key)
    end
end
