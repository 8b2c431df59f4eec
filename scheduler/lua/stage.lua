-- Writes one batch of a plan's tasks; invisible until `flip`, because no pool's turn names the plan.
-- KEYS: root
-- ARGV: plan version batch
local bad = wrong_type({k_plan(plan), 'hash', k_order(plan), 'zset', R .. 'staging', 'zset'})
if bad then return refuse('store_corrupt', bad) end
if redis.call('EXISTS', k_plan(plan)) == 1 then return refuse('conflict', 'plan ' .. plan .. ' exists') end
local items = cjson.decode(batch)
redis.call('ZADD', R .. 'staging', NOW, plan)
local specs = R .. 's:' .. plan .. ':' .. version
for _, it in ipairs(items) do
  local t = it.id
  redis.call('HSET', specs, t, it.spec)
  redis.call('ZADD', k_order(plan), it.n, t)
  redis.call('HSET', k_row(plan, t), 'st', 'pending', 'n', it.n, 'pool', it.pool, 'ck', it.checks, 'max', it.max,
    'bo', it.backoff, 'bomax', it.max_backoff, 'wait', it.wait, 'path', it.path, 'prio', it.priority, 't0', NOW)
  if it.next ~= '' then redis.call('SET', k_next(plan, t), it.next) end
  for name, value in pairs(it.gates) do redis.call('HSET', k_row(plan, t), name, value) end
  if it.wait == 0 and not (it.gates.g_fb or it.gates.g_end) then
    if it.gates.g_if or it.gates.g_each then
      redis.call('RPUSH', k_gates(plan), t)
    else
      redis.call('ZADD', k_ready(it.pool, plan), score(it.priority, it.path, it.n), t)
    end
  end
end
return done()
