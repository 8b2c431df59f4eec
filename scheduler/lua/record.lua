-- Stores one evidence record of the attempt's result. A repeat changes nothing.
-- KEYS: root
-- ARGV: plan task attempt token check digest accepted evidence
local bad = task_types(plan, task) or wrong_type({k_evidence(plan, task, attempt), 'hash'})
if bad then return refuse('store_corrupt', bad) end
local row = hash(k_row(plan, task))
local no = fence(plan, task, row, attempt, token, 'record')
if no then return no end
if row.res ~= digest then return refuse('conflict', 'evidence names ' .. digest .. ', the result is ' .. (row.res or 'none')) end
if tonumber(check) < 0 or tonumber(check) >= num(row, 'ck') then return refuse('conflict', task .. ' has no check ' .. check) end
local key = k_evidence(plan, task, attempt)
local old = redis.call('HGET', key, check)
if old and cjson.decode(old).token == token then return done({existing = true}) end
local entry = cjson.decode(evidence)
local stamped = string.gsub(evidence, '"recorded_at":0', '"recorded_at":' .. string.format('%.0f', NOW), 1)
redis.call('HSET', key, check, stamped)
move(plan, task, row, 'record', {check = tonumber(check), kind = entry.kind, title = entry.title,
  accepted = accepted == '1', reason = entry.reason})
return done({existing = false})
