-- A plan's own moves that touch no task: interrupt, resume. `only` names the reason that resume may lift.
-- KEYS: root
-- ARGV: plan event reason only who
local bad = plan_types(plan)
if bad then return refuse('store_corrupt', bad) end
local p = hash(k_plan(plan))
if not p then return refuse('not_found', 'no plan ' .. plan) end
local to = PLANS[event][p.state]
if not to then return refuse('conflict', 'plan ' .. plan .. ' is ' .. p.state .. ', so ' .. event .. ' is refused', {state = p.state}) end
if only ~= '' and (p.reason or '') ~= only then
  return refuse('conflict', 'plan ' .. plan .. ' was paused by ' .. (p.reason or 'a person') .. ', not by a ' .. only)
end
redis.call('HSET', k_plan(plan), 'state', to, 'reason', reason)
emit(plan, {ev = 'plan.' .. event, from = p.state, to = to, reason = reason, by = who})
sync_all(plan)
ring(plan)
finish(plan)
return done({state = to})
