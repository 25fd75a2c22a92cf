-- What there is of a job. Writes nothing.
-- KEYS  1 job hash  2 tombstone  3 delayed jobs
-- ARGV  1 job id  2 prefix of RQ's queue lists  3 prefix of RQ's sets of workers  4 prefix of RQ's registries of
--       what runs
-- Keys of its queue are made from the prefixes, since its name stands in the job hash.
-- Returns {now in ms, tombstone or false, {field, value, ...} of the job hash, what outlook gives or nothing}
local reply = {now_ms(), redis.call('GET', KEYS[2]), redis.call('HGETALL', KEYS[1])}
local job = redis.call('HMGET', KEYS[1], 'status', 'queue', 'number', 'task', 'known')
if job[2] and (job[1] == 'queued' or job[1] == 'running') then
    reply[4] = outlook(KEYS[1], ARGV[1], job, ARGV[2] .. job[2], ARGV[3] .. job[2], ARGV[4] .. job[2], KEYS[3])
end
return reply
