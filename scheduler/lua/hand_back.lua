-- An attempt goes back uncharged: a worker drains, a claim never started, an attempt failed just after thawing (once).
-- Verification that is handed back stays verifying, as verify work.
-- KEYS: root
-- ARGV: plan task attempt token session reason limit thaw
local bad = task_types(plan, task) or session_types(session)
if bad then return refuse('store_corrupt', bad) end
local row = hash(k_row(plan, task))
if not row then return refuse('not_found', 'no task ' .. task .. ' in plan ' .. plan) end
if row.att ~= attempt then return refuse('fenced', 'attempt ' .. attempt .. ' of ' .. task .. ' was taken back') end
if row.st == 'pending' then return done({state = row.st}) end
local unstarted_claim = row.st == 'claimed' and row.sess == session and token == ''
if not unstarted_claim then
  if row.st == 'verifying' and row.tok == token and token ~= '' then
    if row.cancel == '1' then end_cancelled(plan, task, row, 'worker') else
      take_over(plan, task, row, reason, reason, tonumber(limit))
    end
    return done({state = row.st})
  end
  local no = fence(plan, task, row, attempt, token, 'hand_back')
  if no then return no end
end
if row.cancel == '1' then
  end_cancelled(plan, task, row, 'worker')
  return done({state = 'cancelled'})
end
if thaw == '1' then
  if row.th == '1' then return refuse('conflict', task .. ' was handed back after a thaw before', {excused = true}) end
  redis.call('HSET', k_row(plan, task), 'th', '1')
end
return done({state = give_back(plan, task, row, reason, tonumber(limit), session)})
