-- SPDX-License-Identifier: Apache-2.0
-- Shows what `oneway match --annotate` found out about packets as fields: oneway.delay, oneway.fate and others, for
-- columns, filters and graphs. Copy this file into a folder of Help > About Wireshark > Folders > Lua Plugins; docs/wireshark.md.
--
-- It reads the comment of a packet that begins with "oneway:". The rest is NAME=VALUE, separated by spaces.

local oneway = Proto("oneway", "oneway: one-way delay and loss")

local field = {
	fate = ProtoField.string("oneway.fate", "Fate"),
	direction = ProtoField.string("oneway.direction", "Direction"),
	delay = ProtoField.double("oneway.delay", "Delay in seconds"),
	delay_ns = ProtoField.int64("oneway.delay_ns", "Delay in nanoseconds"),
	least = ProtoField.double("oneway.least", "Shortest plausible delay in seconds"),
	most = ProtoField.double("oneway.most", "Longest plausible delay in seconds"),
	ambiguous = ProtoField.bool("oneway.ambiguous", "Ambiguous"),
	other_frame = ProtoField.uint64("oneway.other_frame", "Frame in the other capture"),
	other_time = ProtoField.absolute_time("oneway.other_time", "Time in the other capture"),
	copy = ProtoField.uint64("oneway.copy", "Copy"),
	packets = ProtoField.uint32("oneway.packets", "Packets of the wire"),
	matched = ProtoField.uint32("oneway.matched", "Matched packets"),
	lost = ProtoField.uint32("oneway.lost", "Lost packets"),
	last_seen = ProtoField.string("oneway.last_seen", "Last point that saw it"),
}

local HOPS = 15
for i = 1, HOPS do
	field["hop" .. i] = ProtoField.double("oneway.hop" .. i, "Delay of hop " .. i .. " in seconds")
end

oneway.fields = {}
for _, f in pairs(field) do
	table.insert(oneway.fields, f)
end

local lost_expert = ProtoExpert.new("oneway.is_lost", "Lost on the way", expert.group.SEQUENCE, expert.severity.WARN)
oneway.experts = { lost_expert }

local comments = Field.new("frame.comment")

-- The values of the comment by name; nil without such a comment.
local function read_comment()
	for _, comment in ipairs({ comments() }) do
		local text = tostring(comment)
		if text:sub(1, 7) == "oneway:" then
			local values = {}
			for name, value in text:gmatch("(%l[%l%d_]*)=(%S+)") do
				values[name] = value
			end
			return values
		end
	end
end

local function nanoseconds(value)
	local digits = value and value:match("^(%-?%d+)ns$")
	return digits and Int64.new(digits)
end

local function add_delays(tree, values)
	local delay = nanoseconds(values.delay)
	if delay then
		tree:add(field.delay, delay:tonumber() / 1e9)
		tree:add(field.delay_ns, delay)
	end
	local names = { "least", "most" }
	for i = 1, HOPS do
		table.insert(names, "hop" .. i)
	end
	for _, name in ipairs(names) do
		local duration = nanoseconds(values[name])
		if duration then
			tree:add(field[name], duration:tonumber() / 1e9)
		end
	end
end

local function add_other(tree, values)
	if values.other_frame then
		tree:add(field.other_frame, UInt64.new(values.other_frame))
	end
	local seconds, fraction = (values.other_time or ""):match("^(%-?%d+)%.(%d+)$")
	if seconds then
		tree:add(field.other_time, NSTime.new(tonumber(seconds), tonumber(fraction)))
	end
end

-- Packets of the wire by fate. A superframe has several packets, and they may have different fates.
local function add_counts(tree, values)
	local packets = tonumber(values.packets or 1)
	tree:add(field.packets, packets)
	for _, name in ipairs({ "matched", "lost" }) do
		local count = tonumber(values[name] or (values.fate == name and packets or 0))
		if count > 0 then
			tree:add(field[name], count)
		end
	end
	return tonumber(values.lost or (values.fate == "lost" and packets or 0)) > 0
end

function oneway.dissector(_, pinfo, root)
	local values = read_comment()
	if not values or not values.fate then
		return
	end
	local tree = root:add(oneway)
	tree:set_generated()
	tree:append_text(": " .. values.fate .. (values.delay and ", " .. values.delay or ""))
	tree:add(field.fate, values.fate)
	if values.direction then
		tree:add(field.direction, values.direction)
	end
	add_delays(tree, values)
	if values.ambiguous then
		tree:add(field.ambiguous, true)
	end
	add_other(tree, values)
	if values.copy then
		tree:add(field.copy, UInt64.new(values.copy))
	end
	if values.last_seen then
		tree:add(field.last_seen, values.last_seen)
	end
	if add_counts(tree, values) then
		tree:add_proto_expert_info(lost_expert)
	end
end

register_postdissector(oneway)
