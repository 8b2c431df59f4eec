-- A person's approval of one version, by its hash. Twice is once.
-- KEYS: root
-- ARGV: plan version hash_ who
local bad = plan_types(plan) or wrong_type({R .. 'ap:' .. plan, 'hash'})
if bad then return refuse('store_corrupt', bad) end
local p = hash(k_plan(plan))
if not p then return refuse('not_found', 'no plan ' .. plan) end
if p.version ~= version or p.hash ~= hash_ then
  return refuse('conflict', 'plan ' .. plan .. ' is at version ' .. p.version .. ' with hash ' .. p.hash)
end
if p.approved == hash_ then return done({state = p.state, existing = true}) end
local to = PLANS.approve[p.state]
if not to then return refuse('conflict', 'plan ' .. plan .. ' is ' .. p.state .. ', not awaiting approval') end
redis.call('HSET', k_plan(plan), 'approved', hash_, 'state', to)
redis.call('HSET', R .. 'ap:' .. plan, version, cjson.encode({hash = hash_, by = who, at = NOW}))
emit(plan, {ev = 'plan.approve', from = p.state, to = to, version = tonumber(version), hash = hash_, by = who})
sync_all(plan)
ring(plan)
finish(plan)
return done({state = redis.call('HGET', k_plan(plan), 'state'), existing = false})
