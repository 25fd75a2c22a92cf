-- A worker took a job of another deployment from a queue that both share. It goes back to the head, so that those of
-- the other stay in their order, and the worker gets the next of its own instead, however many stand before it.
-- One call looks at a part of the queue; where it holds none of ours, the next call looks at the part after it.
-- KEYS  1 RQ's queue list  2 RQ's intermediate list
-- ARGV  1 job id  2 prefix of our job hashes  3 first entry to look at, from 0  4 most entries to look at
-- Keys of jobs are made from the prefix, since their names stand in the queue.
-- Returns {id of the job that the worker has now, or false, first entry to look at next time}
local AT_A_TIME = 100

local function next_of_ours(first, last)
    for from = first, last, AT_A_TIME do
        for _, job_id in ipairs(redis.call('LRANGE', KEYS[1], from, math.min(from + AT_A_TIME - 1, last))) do
            if redis.call('HGET', ARGV[2] .. job_id, 'status') == 'queued' then
                return job_id
            end
        end
    end
    return false
end

if redis.call('LREM', KEYS[2], 1, ARGV[1]) == 1 then
    redis.call('LPUSH', KEYS[1], ARGV[1])
end
local first = tonumber(ARGV[3])
if first >= redis.call('LLEN', KEYS[1]) then
    first = 0
end
local after = first + tonumber(ARGV[4])
local ours = next_of_ours(first, after - 1)
if not ours then
    return {false, after}
end
redis.call('LREM', KEYS[1], 1, ours)
redis.call('RPUSH', KEYS[2], ours)
return {ours, first}
