-- One bounded step of what follows from ended tasks: skip their descendants, cancel a cancelled plan's pending tasks.
-- KEYS: root
-- ARGV: plan limit
local bad = plan_types(plan) or wrong_type({k_order(plan), 'zset'})
if bad then return refuse('store_corrupt', bad) end
local p = hash(k_plan(plan))
if not p then
  redis.call('SREM', K_DIRTY, plan)
  return done({left = 0})
end
local budget = tonumber(limit)
if p.state == 'cancelling' and p.cursor then
  local from = tonumber(p.cursor)
  local ids = redis.call('ZRANGE', k_order(plan), from, from + budget - 1)
  for _, t in ipairs(ids) do
    local row = hash(k_row(plan, t))
    if row.st == 'pending' then
      unindex(plan, t, row)
      move(plan, t, row, 'ask_cancel', {by = 'plan'})
    elseif row.st == 'verifying' and (row.sess or '') == '' then
      unindex(plan, t, row)
      end_cancelled(plan, t, row, 'plan')
    elseif row.st ~= 'pending' and (row.sess or '') ~= '' and row.cancel ~= '1' then
      redis.call('HSET', k_row(plan, t), 'cancel', '1')
      move(plan, t, row, 'ask_cancel', {by = 'plan'})
    end
  end
  budget = budget - #ids
  if #ids < tonumber(limit) then redis.call('HDEL', k_plan(plan), 'cursor')
  else redis.call('HSET', k_plan(plan), 'cursor', from + #ids) end
end
while budget > 0 do
  local t = redis.call('LINDEX', k_settle(plan), 0)
  if not t then break end
  local row = hash(k_row(plan, t))
  local stopped = row.st == 'failed' or row.st == 'skipped' or row.st == 'cancelled' or row.st == 'invalidated'
  local raw = stopped and redis.call('GET', k_next(plan, t))
  local all = raw and cjson.decode(raw) or {}
  local from = num(p, 'at')
  local upto = math.min(#all, from + budget)
  for i = from + 1, upto do
    local n = all[i]
    local below = hash(k_row(plan, n))
    if below.st == 'pending' then
      local cause = row.st == 'skipped' and row.cause or t .. ' ' .. row.st
      redis.call('HSET', k_row(plan, n), 'cause', cause)
      unindex(plan, n, below)
      move(plan, n, below, 'skip', {cause = cause})
      redis.call('RPUSH', k_settle(plan), n)
    end
  end
  budget = budget - math.max(upto - from, 1)
  if upto >= #all then
    redis.call('LPOP', k_settle(plan))
    redis.call('HDEL', k_plan(plan), 'at')
    p.at = nil
  else
    redis.call('HSET', k_plan(plan), 'at', upto)
    p.at = upto
  end
end
local left = redis.call('LLEN', k_settle(plan)) + (redis.call('HEXISTS', k_plan(plan), 'cursor') == 1 and 1 or 0)
if left == 0 then
  redis.call('SREM', K_DIRTY, plan)
  finish(plan)
end
return done({left = left})
