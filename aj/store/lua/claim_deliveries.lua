-- Hands due deliveries to a deliverer, each under a lease. No host gets more than its share at a time, however many
-- deliverers there are, and hosts that have not answered lately get only a part of the hands together: so neither a
-- dead receiver nor many of them can hold back the ones that answer. Needs `schedule_host`.
-- `outbox` is the prefix of the outbox keys, `hosts` the set of hosts with work, `share` the most for one host at a
-- time, `lease` its length in ms, `token` the mark of this claim. At most `wanted` deliveries are claimed, and at most
-- `doubtful` for hosts that have not answered lately.
-- Returns {ms until the next work or -1,
--          {job id, url, host, body, attempt number, 1 if the host answers, traceparent or false}, ...},
--          and whether there is work that is due and was left to others

-- Claims up to `free` deliveries of one host, into `reply`.
local function claim_from(outbox, host, answers, free, lease_end, token, reply)
    local due, busy = outbox .. ':due:' .. host, outbox .. ':busy:' .. host
    for _, job in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now_ms(), 'LIMIT', 0, free)) do
        local delivery = outbox .. ':job:' .. job
        local row = redis.call('HMGET', delivery, 'url', 'body', 'traceparent')
        if row[1] then
            redis.call('HSET', delivery, 'token', token)
            redis.call('ZADD', due, lease_end, job)
            redis.call('ZADD', busy, lease_end, job)
            local attempt = redis.call('HINCRBY', delivery, 'attempts', 1)
            table.insert(reply, {job, row[1], host, row[2], attempt, answers, row[3]})
        else
            redis.call('ZREM', due, job)
            redis.call('ZREM', outbox .. ':pending', job)
        end
    end
    redis.call('PEXPIREAT', busy, lease_end + 1000)
end

local function claim_deliveries(outbox, hosts, share, wanted, doubtful, lease, token)
    local now, reply, passed_over = now_ms(), {-1}, false
    for _, host in ipairs(redis.call('ZRANGEBYSCORE', hosts, '-inf', now, 'LIMIT', 0, 1000)) do
        if #reply > wanted then
            break
        end
        local answers = redis.call('EXISTS', outbox .. ':answers:' .. host)
        if answers == 0 and doubtful < 1 then
            passed_over = true
        else
            local busy, before = outbox .. ':busy:' .. host, #reply
            redis.call('ZREMRANGEBYSCORE', busy, '-inf', now)
            local its_share = share_of(outbox, host, share)
            local free = math.min(its_share - redis.call('ZCARD', busy), wanted + 1 - #reply)
            if free > 0 then
                claim_from(outbox, host, answers, free, now + lease, token, reply)
            end
            doubtful = doubtful - (1 - answers) * (#reply - before)
            schedule_host(outbox, hosts, host, its_share)
        end
    end
    -- What was passed over waits for a hand and not for a time.
    local from = passed_over and '(' .. now or '-inf'
    local first = redis.call('ZRANGEBYSCORE', hosts, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if first[2] then
        reply[1] = math.max(0, tonumber(first[2]) - now)
    end
    return reply, passed_over or reply[1] == 0
end
