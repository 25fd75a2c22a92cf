-- Hands due deliveries to a deliverer, each under a lease. No host gets more than its share at a time, however many
-- deliverers there are, and hosts that have not answered lately get only a part of the hands together: so neither a
-- dead receiver nor many of them can hold back the ones that answer.
-- KEYS  1 hosts with work
-- ARGV  1 prefix of the outbox keys  2 most deliveries wanted  3 most at a time for one host  4 lease, ms
--       5 token of this claim  6 most deliveries for hosts that have not answered lately
-- Keys of single hosts and deliveries are made from the prefix, since their names stand in KEYS[1].
-- Returns {ms until the next work or -1,
--          {job id, url, host, body, attempt number, 1 if the host answers, traceparent or false}, ...}
local now, wanted, share, doubtful = now_ms(), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[6])
local lease_end = now + tonumber(ARGV[4])
local reply = {-1}
local passed_over = false
for _, host in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1000)) do
    local answers = redis.call('EXISTS', ARGV[1] .. ':answers:' .. host)
    if answers == 0 and doubtful < 1 then
        passed_over = true
    else
        local due, busy = ARGV[1] .. ':due:' .. host, ARGV[1] .. ':busy:' .. host
        redis.call('ZREMRANGEBYSCORE', busy, '-inf', now)
        local its_share = share_of(ARGV[1] .. ':answers:' .. host, share)
        local free = math.min(its_share - redis.call('ZCARD', busy), wanted - (#reply - 1))
        if free > 0 then
            for _, job in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, free)) do
                local delivery = ARGV[1] .. ':job:' .. job
                local row = redis.call('HMGET', delivery, 'url', 'body', 'traceparent')
                if row[1] then
                    redis.call('HSET', delivery, 'token', ARGV[5])
                    redis.call('ZADD', due, lease_end, job)
                    redis.call('ZADD', busy, lease_end, job)
                    local attempt = redis.call('HINCRBY', delivery, 'attempts', 1)
                    table.insert(reply, {job, row[1], host, row[2], attempt, answers, row[3]})
                    doubtful = doubtful - (1 - answers)
                else
                    redis.call('ZREM', due, job)
                    redis.call('ZREM', ARGV[1] .. ':pending', job)
                end
            end
            redis.call('PEXPIREAT', busy, lease_end + 1000)
        end
        schedule_host(KEYS[1], due, busy, host, its_share)
    end
    if #reply - 1 >= wanted then
        break
    end
end
-- What was passed over waits for a hand and not for a time.
local from = passed_over and '(' .. now or '-inf'
local first = redis.call('ZRANGEBYSCORE', KEYS[1], from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if first[2] then
    reply[1] = math.max(0, tonumber(first[2]) - now)
end
return reply
