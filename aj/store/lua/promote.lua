-- A delayed job is due: it goes into its queue, once, however many sweeps see it.
-- KEYS  1 job hash  2 delayed jobs
-- ARGV  1 job id  then RQ's commands, the queue push last
-- Returns 1, or 0 where another sweep was quicker
if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 or redis.call('HGET', KEYS[1], 'status') ~= 'queued' then
    return 0
end
run_commands(2)
rejoin_line(KEYS[1])
return 1
