-- Writes one batch of a `for_each` task's instances beside the plan; invisible until `expand`.
-- KEYS: root
-- ARGV: plan task batch
local bad = task_types(plan, task) or wrong_type({R .. 'ox:' .. plan .. ':' .. task, 'zset', R .. 'rx:' .. plan .. ':' .. task, 'zset'})
if bad then return refuse('store_corrupt', bad) end
local row = hash(k_row(plan, task))
local cause = row and row_cause(row)
if not cause or cause.cause ~= 'gate' or cause.gate ~= 'for_each' then return done({existing = true}) end
for _, it in ipairs(cjson.decode(batch)) do
  local t = task .. '.' .. it.i
  local n = (num(row, 'n') + 1) * 1000000 + it.i
  redis.call('DEL', k_row(plan, t))
  redis.call('HSET', k_row(plan, t), 'st', 'pending', 'n', n, 'pool', row.pool, 'ck', row.ck, 'max', row.max, 'bo', row.bo,
    'bomax', row.bomax, 'path', row.path, 'prio', row.prio, 't0', NOW, 'item', it.item, 'of', task)
  if row.cont then redis.call('HSET', k_row(plan, t), 'cont', '1') end
  redis.call('SET', k_next(plan, t), cjson.encode({{task, 'm'}}))
  redis.call('ZADD', R .. 'ox:' .. plan .. ':' .. task, num(row, 'n') + (it.i + 1) / 1e6, t)
  redis.call('ZADD', R .. 'rx:' .. plan .. ':' .. task, score(num(row, 'prio'), num(row, 'path'), num(row, 'n')) - it.i / 1e4, t)
end
return done({existing = false})
