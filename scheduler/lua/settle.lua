-- One bounded step of what follows from ended tasks: skip their descendants, call fallbacks, cancel what is to be cancelled.
-- The outcome does not depend on the order: a bad end that counts beats one that does not, then the first in the file.
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
local by = p.state == 'cancelling' and 'plan' or 'fail_fast'

if p.cursor then
  local from = tonumber(p.cursor)
  local ids = redis.call('ZRANGE', k_order(plan), from, from + budget - 1)
  for _, t in ipairs(ids) do
    local row = hash(k_row(plan, t))
    if row.st == 'pending' and not row.exp and not (by == 'fail_fast' and row.g_end) then
      unindex(plan, t, row)
      move(plan, t, row, 'ask_cancel', {by = by})
      to_settle(plan, t)
    elseif row.st == 'verifying' and (row.sess or '') == '' then
      unindex(plan, t, row)
      end_cancelled(plan, t, row, by)
    elseif row.st ~= 'pending' and (row.sess or '') ~= '' and row.cancel ~= '1' then
      redis.call('HSET', k_row(plan, t), 'cancel', '1')
      move(plan, t, row, 'ask_cancel', {by = by})
      redis.call('RPUSH', k_inbox(row.sess), 'cancel')
      redis.call('PEXPIRE', k_inbox(row.sess), 60000)
    end
  end
  budget = budget - #ids
  if #ids < tonumber(limit) then redis.call('HDEL', k_plan(plan), 'cursor')
  else redis.call('HSET', k_plan(plan), 'cursor', from + #ids) end
end

-- What a bad end says to one dependent over a verified edge.
local function stop(n, ended)
  local below = hash(k_row(plan, n))
  if below.g_fb and below.st == 'pending' then -- a fallback that is not called: remembered, and said when it is
    if not below.cn or (ended.hard and below.bh ~= '1') or (ended.hard == (below.bh == '1') and ended.n < num(below, 'cn')) then
      redis.call('HSET', k_row(plan, n), 'cause', ended.cause, 'cn', ended.n, 'bh', ended.hard and '1' or '0')
    end
    return
  end
  local better = not below.cn or (ended.hard and below.soft == '1') or
    (ended.hard == (below.soft ~= '1') and ended.n < num(below, 'cn'))
  if below.st == 'pending' or (below.st == 'skipped' and below.cn and better) then
    redis.call('HSET', k_row(plan, n), 'cause', ended.cause, 'cn', ended.n)
    set_soft(plan, n, below, not ended.hard)
    unindex(plan, n, below)
    move(plan, n, below, 'skip', {cause = ended.cause})
    redis.call('RPUSH', k_settle(plan), n)
  end
end

local function member(n, ended)
  local key = k_row(plan, n)
  local row = hash(key)
  if ended.again then
    if ended.hard and row.st == 'failed' and row.soft == '1' then
      set_soft(plan, n, row, false)
      redis.call('RPUSH', k_settle(plan), n)
    end
    return
  end
  local better = not row.cn or (ended.hard and row.hard ~= '1') or (ended.hard == (row.hard == '1') and ended.n < num(row, 'cn'))
  if better then redis.call('HSET', key, 'cause', ended.cause, 'cn', ended.n) end
  if ended.hard then redis.call('HSET', key, 'hard', '1') end
  redis.call('HINCRBY', key, 'wait', -1)
  join(plan, n, hash(key))
end

while budget > 0 do
  local t = redis.call('LINDEX', k_settle(plan), 0)
  if not t then break end
  local row = hash(k_row(plan, t))
  local stopped = row.st == 'failed' or row.st == 'skipped' or row.st == 'cancelled' or row.st == 'invalidated'
  local from, upto, all = num(p, 'at'), 0, {}
  if stopped then
    local fallback = row.st == 'failed' and row.fb and hash(k_row(plan, row.fb))
    local called = fallback ~= false and fallback ~= nil
    if from == 0 and fallback and fallback.g_fb then
      redis.call('HDEL', k_row(plan, row.fb), 'g_fb')
      redis.call('HSET', k_row(plan, row.fb), 'called', t)
      redis.call('HSET', k_row(plan, t), 'sub', row.fb)
      fallback.g_fb, fallback.called = nil, t
      if fallback.st == 'pending' then
        move(plan, row.fb, fallback, 'open', {gate = 'fallback', of = t})
        if fallback.cn then
          set_soft(plan, row.fb, fallback, fallback.bh ~= '1')
          move(plan, row.fb, fallback, 'skip', {cause = fallback.cause})
          redis.call('RPUSH', k_settle(plan), row.fb)
        else
          arrive(plan, row.fb, fallback)
        end
      else
        redis.call('RPUSH', k_settle(plan), row.fb)
      end
    elseif from == 0 and row.fb and row.st ~= 'failed' then
      spare(plan, row.fb, t)
    end
    local hard = row.soft ~= '1'
    if from == 0 and hard and p.fail_fast and not p.ff and p.state ~= 'cancelling' and row.st == 'failed' then
      redis.call('HSET', k_plan(plan), 'ff', t, 'cursor', 0)
      p.ff = t
      sync_all(plan)
    end
    local ended = {hard = hard, n = num(row, 'cn'), cause = row.cause, again = row.settled == '1'}
    if row.st ~= 'skipped' or not row.cn then
      ended.n, ended.cause = num(row, 'n'), row.st == 'skipped' and row.cause or t .. ' ' .. row.st
    end
    all = (read_next(plan, t)) or {}
    if row.called then
      local first = row.called
      while first do
        for _, edge in ipairs((read_next(plan, first)) or {}) do
          if edge[2] == 'v' then all[#all + 1] = edge end
        end
        first = redis.call('HGET', k_row(plan, first), 'called')
      end
    end
    upto = math.min(#all, from + budget)
    for i = from + 1, upto do
      local n, when = all[i][1], all[i][2]
      if when == 's' then
        if not ended.again then hold_edge(plan, n) end
      elseif when == 'm' then
        member(n, ended)
      elseif not called then
        stop(n, ended)
      end
    end
    if upto >= #all then redis.call('HSET', k_row(plan, t), 'settled', '1') end
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
sync_all(plan)
local left = redis.call('LLEN', k_settle(plan)) + (redis.call('HEXISTS', k_plan(plan), 'cursor') == 1 and 1 or 0)
local gates = redis.call('LLEN', k_gates(plan))
if left == 0 then
  if gates == 0 then redis.call('SREM', K_DIRTY, plan) end
  finish(plan)
end
return done({left = left})
