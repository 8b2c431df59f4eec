-- Makes a staged plan visible: version 1, its approval as policy says, its events, its turn in every pool.
-- KEYS: root
-- ARGV: plan name goal version hash_ record pools total concurrency approval key content who sys fail_fast
local bad = plan_types(plan) or wrong_type({R .. 'keys', 'hash', R .. 'plans', 'zset', R .. 'v:' .. plan .. ':' .. version,
  'string', R .. 'ap:' .. plan, 'hash'})
if bad then return refuse('store_corrupt', bad) end
if key ~= '' then
  local first = redis.call('HGET', R .. 'keys', key)
  if first then
    local seen = cjson.decode(first)
    if seen.content == content then return done({plan = seen.plan, existing = true}) end
    return refuse('conflict', 'key ' .. key .. ' belongs to plan ' .. seen.plan .. ' with other content')
  end
end
if redis.call('EXISTS', k_plan(plan)) == 1 then
  if redis.call('HGET', k_plan(plan), 'hash') == hash_ then return done({plan = plan, existing = true}) end
  return refuse('conflict', 'plan ' .. plan .. ' exists')
end
if redis.call('ZCARD', k_order(plan)) ~= tonumber(total) then
  return refuse('conflict', 'plan ' .. plan .. ' is not staged completely')
end
local state = approval == 'auto' and PLANS.approve.draft or PLANS.request.draft
redis.call('SET', R .. 'v:' .. plan .. ':' .. version, record)
redis.call('HSET', k_plan(plan), 'name', name, 'goal', goal, 'state', state, 'version', version, 'hash', hash_,
  'pools', pools, 'total', total, 'concurrency', concurrency, 'used', 0, 'n:pending', total, 'created', NOW)
if sys ~= '' then redis.call('HSET', k_plan(plan), 'sys', sys) end
if fail_fast == '1' then redis.call('HSET', k_plan(plan), 'fail_fast', '1') end
if redis.call('LLEN', k_gates(plan)) > 0 then redis.call('SADD', K_DIRTY, plan) end
redis.call('ZADD', R .. 'plans', NOW, plan)
redis.call('SADD', K_ACTIVE, plan)
redis.call('ZREM', R .. 'staging', plan)
if key ~= '' then redis.call('HSET', R .. 'keys', key, cjson.encode({plan = plan, content = content})) end
emit(plan, {ev = 'plan.submit', from = '', to = 'draft', version = tonumber(version), hash = hash_, by = who,
  total = tonumber(total)})
if approval == 'auto' then
  redis.call('HSET', k_plan(plan), 'approved', hash_)
  redis.call('HSET', R .. 'ap:' .. plan, version, cjson.encode({hash = hash_, by = 'policy auto', at = NOW}))
  emit(plan, {ev = 'plan.approve', from = 'draft', to = state, version = tonumber(version), hash = hash_,
    by = 'policy auto'})
else
  emit(plan, {ev = 'plan.request', from = 'draft', to = state, version = tonumber(version), hash = hash_, by = who})
end
sync_all(plan)
return done({plan = plan, existing = false})
