-- Frames of in-network aggregation for Wireshark and tshark, written by "olafctl system program dissector" from olafctl's own tables:
--   tshark -X lua_script:inagg.lua -r run.pcapng -Y isw.seg==3
-- Formats that nothing on the wire tells apart (isw-1 and isw-x) are chosen by "Decode As" (tshark -d udp.port==20301,iswx).

--TABLES--

local ip_tos = Field.new("ip.dsfield")

-- known finds a value's word.
local function known(field, value)
  return field.names and field.names[value]
end

-- number reads a field; nothing where a capture's snapshot length has cut it off.
local function number(tvb, base, field)
  local first = base + math.floor(field.at / 8)
  local bytes = math.ceil((field.at % 8 + field.bits) / 8)
  if first + bytes > tvb:len() then return nil end
  local range = tvb(first, bytes)
  if field.little then
    return bytes > 4 and range:le_uint64() or range:le_uint(), range
  end
  if field.at % 8 == 0 and field.bits % 8 == 0 then
    if field.signed then return range:int(), range end
    return bytes > 4 and range:uint64() or range:uint(), range
  end
  return range:bitfield(field.at % 8, field.bits), range
end

-- matches says whether a payload is a message, by the fields that tell messages apart.
local function matches(tvb, message, length)
  for _, field in ipairs(message.head) do
    if field.selects then
      local value = number(tvb, 0, field)
      if value ~= field.value then return false end
    end
  end
  local lanes = length - message.head_bytes - message.tail_bytes
  if message.full then return lanes == 4 * message.most end
  return lanes >= 0 and lanes % 4 == 0 and lanes <= 4 * message.most
end

-- add shows fields, and says what they are in short.
local function add(tvb, tree, format, fields, base, words)
  for _, field in ipairs(fields) do
    local value, range = number(tvb, base, field)
    if range then
      local shown = value
      if field.mark then shown = value ~= 0 end
      tree:add(format.shown[field.name], range, shown)
      if field.mark and shown and not field.value then
        table.insert(words, field.name)
      elseif not field.mark and not field.value and not field.spare then
        table.insert(words, field.name .. "=" .. (known(field, value) or tostring(value)))
      end
    end
  end
end

-- lanes shows the words of a gradient.
local function lanes(tvb, tree, format, message, length)
  local n = math.floor((length - message.head_bytes - message.tail_bytes) / 4)
  if n == 0 then return end
  local kept = math.min(n, math.floor((tvb:len() - message.head_bytes) / 4))
  local title = n .. " lanes, " .. message.lane
  if kept < n then title = title .. ", of which the capture has kept " .. kept end
  if kept == 0 then
    tree:add(title)
    return
  end
  local branch = tree:add(tvb(message.head_bytes, 4 * kept), title)
  for i = 0, kept - 1 do
    branch:add(format.shown.lane, tvb(message.head_bytes + 4 * i, 4))
  end
end

-- shared finds the message that a payload is: of the format that the port stands for, or else of another one of that port.
local function shared(format, tvb, tos, reply, length)
  local candidates = { format }
  for _, other in ipairs(formats) do
    if other ~= format and other.table == format.table and other.pattern == format.pattern then table.insert(candidates, other) end
  end
  for _, one in ipairs(candidates) do
    for _, message in ipairs(one.messages) do
      if message.tos == tos and message.reply == reply and matches(tvb, message, length) then return one, message end
    end
  end
  return format, nil
end

-- dissect shows a frame from behind UDP, or behind what stands for it.
local function dissect(format, tvb, pinfo, tree)
  if format.behind_ip > 0 then
    if tvb:len() <= format.behind_ip then return 0 end
    tvb = tvb(format.behind_ip):tvb()
  end
  local length = tvb:reported_len()
  local reply, tos = false, 0
  if format.last_port then
    reply = pinfo.dst_port < format.port or pinfo.dst_port > format.last_port
    local field = ip_tos()
    if field then tos = field.value - field.value % 4 end
  end
  local message
  format, message = shared(format, tvb, tos, reply, length)
  pinfo.cols.protocol = format.title
  local branch = tree:add(format.proto, tvb(), format.title)
  if not message then
    pinfo.cols.info = "malformed"
    branch:add_proto_expert_info(format.malformed, "no message of " .. format.title .. " is tagged, coded and as long as this")
    return tvb:len()
  end
  local words = {}
  branch:add(format.shown.message, message.name):set_generated()
  add(tvb, branch, format, message.head, 0, words)
  lanes(tvb, branch, format, message, length)
  add(tvb, branch, format, message.tail, length - message.tail_bytes, {})
  table.insert(words, 1, message.name)
  local info = table.concat(words, " ")
  pinfo.cols.info = info
  branch:append_text(", " .. info)
  return tvb:len()
end

for _, format in ipairs(formats) do
  format.malformed = ProtoExpert.new(format.proto.name:lower() .. ".malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
  format.proto.experts = { format.malformed }
  local fields = {}
  for _, field in pairs(format.shown) do table.insert(fields, field) end
  format.proto.fields = fields
  format.proto.dissector = function(tvb, pinfo, tree) return dissect(format, tvb, pinfo, tree) end
  local at = DissectorTable.get(format.table)
  if format.by_hand then
    at:add_for_decode_as(format.proto)
  else
    at:add(format.pattern, format.proto)
  end
end
