-- Tries each command that a submission, a worker or a delivery needs. Nothing stays behind, also where one is refused.
-- The first is judged as a write that may need memory, and writes nothing; without the second nothing could be undone.
-- KEYS  1 a key of ours that does not exist  2 one of RQ's that does not exist
-- Returns 'OK', or the error of the first command that was refused
local ours, theirs = KEYS[1], KEYS[2]
local undo = {'DEL', ours, theirs}
for _, command in ipairs({{'SET', ours, 1, 'XX'}, undo}) do
    local reply = redis.pcall(unpack(command))
    if type(reply) == 'table' and reply.err then
        return reply
    end
end
local refused
for _, command in ipairs({
    {'TIME'}, {'PUBLISH', ours, ''}, {'GET', ours}, {'EXISTS', theirs}, {'PTTL', ours},
    {'HSET', ours, 'a', 1}, {'HINCRBY', ours, 'a', 1}, {'HGET', ours, 'a'}, {'HMGET', ours, 'a'}, {'HGETALL', ours},
    {'EXPIRE', ours, 1}, {'PEXPIRE', ours, 1000}, {'PERSIST', ours}, {'HSETNX', ours, 'a', 1}, {'HDEL', ours, 'a'},
    {'PEXPIREAT', ours, 1}, {'STRLEN', theirs},
    {'ZADD', ours, 'XX', 1, 'a'}, {'ZSCORE', ours, 'a'}, {'ZCARD', ours}, {'ZCOUNT', ours, 0, 0}, {'ZRANGE', ours, 0, 0},
    {'ZRANGEBYSCORE', ours, 0, 0}, {'ZREVRANGEBYLEX', ours, '+', '-'}, {'ZREM', ours, 'a'},
    {'ZREMRANGEBYSCORE', ours, 0, 0}, {'ZINTER', 1, ours},
    {'RPUSH', theirs, 'a'}, {'LPUSH', theirs, 'a'}, {'LLEN', theirs}, {'LRANGE', theirs, 0, 0}, {'LINDEX', theirs, 0},
    {'LPOS', theirs, 'a'}, {'LPOP', theirs},
    {'LREM', theirs, 1, 'a'},
    {'SADD', theirs, 'a'}, {'SMEMBERS', theirs}, {'SREM', theirs, 'a'},
}) do
    local reply = redis.pcall(unpack(command))
    refused = refused or type(reply) == 'table' and reply.err and reply
end
redis.call(unpack(undo))
return refused or redis.status_reply('OK')
