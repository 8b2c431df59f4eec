-- Claims that were never started before their dispatch deadline go back uncharged. Judged here, by server time.
-- KEYS: root
-- ARGV: batch limit
local due = redis.call('ZRANGEBYSCORE', K_DISPATCH, '-inf', NOW, 'LIMIT', 0, tonumber(batch))
for _, m in ipairs(due) do
  local p, t = split(m)
  local b = task_types(p, t)
  if b then return refuse('store_corrupt', b) end
end
local back = {}
for _, m in ipairs(due) do
  local p, t = split(m)
  local row = hash(k_row(p, t))
  redis.call('ZREM', K_DISPATCH, m)
  if row and row.st == 'claimed' then
    if row.cancel == '1' then end_cancelled(p, t, row, 'recovery')
    else give_back(p, t, row, 'its claim was not started in time', tonumber(limit), 'recovery') end
    back[#back + 1] = m
  elseif row and row.st == 'verifying' and row.vt == '1' then
    release(p, t, row)
    index(p, t, row)
    sync_all(p)
    back[#back + 1] = m
  end
end
return done({back = back})
