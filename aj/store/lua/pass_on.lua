-- A job of another deployment was taken from a queue that both share: it goes to the end of it, for the other.
-- KEYS  1 RQ's queue list  2 RQ's intermediate list
-- ARGV  1 job id
if redis.call('LREM', KEYS[2], 1, ARGV[1]) == 1 then
    redis.call('RPUSH', KEYS[1], ARGV[1])
end
