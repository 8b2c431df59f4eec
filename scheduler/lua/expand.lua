-- The instances of a `for_each` task appear at once. An empty list holds: the task is completed.
-- KEYS: root
-- ARGV: plan task count
local staged, ready = R .. 'ox:' .. plan .. ':' .. task, R .. 'rx:' .. plan .. ':' .. task
local bad = task_types(plan, task) or wrong_type({staged, 'zset', ready, 'zset', k_order(plan), 'zset'})
if bad then return refuse('store_corrupt', bad) end
local row = hash(k_row(plan, task))
local cause = row and row_cause(row)
redis.call('LREM', k_gates(plan), 0, task)
if not cause or cause.cause ~= 'gate' or cause.gate ~= 'for_each' then return done({existing = true}) end
local size = tonumber(count)
if redis.call('ZCARD', staged) ~= size then return refuse('conflict', task .. ' is not staged completely') end
local nexts, broken = read_next(plan, task)
if broken then return refuse('store_corrupt', broken) end
redis.call('HDEL', k_row(plan, task), 'g_each')
redis.call('HSET', k_row(plan, task), 'wait', size, 'exp', size)
row.g_each, row.wait, row.exp = nil, count, count
if size > 0 then
  redis.call('HINCRBY', k_plan(plan), 'n:pending', size)
  redis.call('HINCRBY', k_plan(plan), 'total', size)
  redis.call('ZUNIONSTORE', k_order(plan), 2, k_order(plan), staged)
  redis.call('ZUNIONSTORE', k_ready(row.pool, plan), 2, k_ready(row.pool, plan), ready)
  redis.call('DEL', staged, ready)
end
move(plan, task, row, 'expand', {count = size})
if size == 0 and join(plan, task, row) then satisfy(plan, task, row, nexts) end
sync_all(plan)
finish(plan)
return done({existing = false})
