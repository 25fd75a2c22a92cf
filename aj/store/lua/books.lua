-- RQ's books for what happens to most jobs: commands that RQ's own code made once for a worker, as JSON in which
-- `<aj:…>` stands where jobs differ; `aj/store/books.py` makes it. `filled` gives what stands for a name. A number is
-- seconds from `at_s` on.
local function keep_books(template, filled, at_s)
    local text = string.gsub(template, '<aj:(%w+)>', function(name)
        return filled[name] or string.format('%d', math.floor(at_s) + name)
    end)
    for _, command in ipairs(cjson.decode(text)) do
        redis.call(unpack(command))
    end
end
