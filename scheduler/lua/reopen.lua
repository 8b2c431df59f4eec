-- One batch of a failed plan's failed, skipped and cancelled tasks goes back to pending, with one more attempt each.
-- The edges of a skipped task were counted on while it was skipped, so only the ready ones enter the index.
-- KEYS: root
-- ARGV: plan cursor limit who
local bad = plan_types(plan) or wrong_type({k_order(plan), 'zset'})
if bad then return refuse('store_corrupt', bad) end
local p = hash(k_plan(plan))
local plan_row = p
if not p then return refuse('not_found', 'no plan ' .. plan) end
if cursor == '0' and not PLANS.reopen[p.state] then
  return refuse('conflict', 'plan ' .. plan .. ' is ' .. p.state .. ', so there is nothing to reopen')
end
if cursor == '0' then
  redis.call('HSET', k_plan(plan), 'state', PLANS.reopen[p.state], 'reopening', '1')
  redis.call('HDEL', k_plan(plan), 'ended', 'reason', 'ff')
  redis.call('SADD', K_ACTIVE, plan)
  emit(plan, {ev = 'plan.reopen', from = p.state, to = PLANS.reopen[p.state], by = who})
end
local from = tonumber(cursor)
local ids = redis.call('ZRANGE', k_order(plan), from, from + tonumber(limit) - 1)
local count = 0
for _, t in ipairs(ids) do
  local row = hash(k_row(plan, t))
  local first = row.of_fb and hash(k_row(plan, row.of_fb))
  local stands = row.sub and hash(k_row(plan, row.sub))
  local needless = (first and first.st == 'completed') or (stands and stands.st == 'completed')
  if TASKS.reopen[row.st] and not needless then
    redis.call('HSET', k_row(plan, t), 'max', num(row, 'charged'), 'hb', 0)
    redis.call('HDEL', k_row(plan, t), 'nb', 'cause', 'cancel', 'vt', 'cn', 'hard', 'settled', 'sub')
    set_soft(plan, t, row, false)
    if row.settled == '1' then
      for _, edge in ipairs((read_next(plan, t)) or {}) do
        if edge[2] ~= 'v' then
          redis.call('HINCRBY', k_row(plan, edge[1]), 'wait', 1)
          unindex(plan, edge[1], hash(k_row(plan, edge[1])))
        end
      end
    end
    row = hash(k_row(plan, t))
    if row.of_fb then
      redis.call('HDEL', k_row(plan, t), 'called', 'bh')
      redis.call('HSET', k_row(plan, t), 'g_fb', row.of_fb)
    end
    if plan_row.sys == t then redis.call('HSET', k_row(plan, t), 'g_end', '1') end
    row = hash(k_row(plan, t))
    move(plan, t, row, 'reopen', {by = who})
    arrive(plan, t, row)
    count = count + 1
  end
end
local last = #ids < tonumber(limit)
if last then redis.call('HDEL', k_plan(plan), 'reopening') end
sync_all(plan)
return done({count = count, cursor = last and 0 or from + #ids})
