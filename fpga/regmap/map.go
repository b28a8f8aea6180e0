package regmap

import (
	"fmt"
	"slices"
)

// Version is the map's version, major.minor.patch. common.map_version contains it in fields of 8, 8 and 16 bits.
// Software written for an older major version must not program the card.
const (
	VersionMajor = 1
	VersionMinor = 5
	VersionPatch = 0
)

// Placeholder is the value read from a working register slave of the shell at an address without a register.
const Placeholder = 0xDEADBEEF

// blockHeader returns the registers at the start of a block. The headers form a linked list, which starts at block
// common and ends with 0. Software uses it to find the blocks in a build.
func blockHeader(kind, next uint32) []Register {
	return []Register{
		{Name: "type", Offset: 0x000, Access: ReadOnly, Reset: uint64(kind),
			Doc: "Four letters that identify the block."},
		{Name: "version", Offset: 0x004, Access: ReadOnly, Reset: versionWord,
			Doc: "Version of the block: major, minor, patch.", Fields: versionFields},
		{Name: "next", Offset: 0x008, Access: ReadOnly, Reset: uint64(next), Unit: "BAR2 bytes",
			Doc: "Address of the next block; 0 ends the list."},
	}
}

// lastHeader returns the registers at the start of a block whose successor in the list exists only in some builds.
func lastHeader(kind, next uint32) []Register {
	h := blockHeader(kind, next)
	h[2].Built = true
	return h
}

const versionWord = VersionMajor<<24 | VersionMinor<<16 | VersionPatch

var versionFields = []Field{
	{Name: "major", Hi: 31, Lo: 24, Doc: "Incompatible changes."},
	{Name: "minor", Hi: 23, Lo: 16, Doc: "Additions."},
	{Name: "patch", Hi: 15, Lo: 0, Doc: "Repairs."},
}

func joinRegisters(parts ...[]Register) []Register {
	var out []Register
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// counterBank places 64-bit counters one after another, starting at offset.
func counterBank(offset uint32, counters ...Register) []Register {
	for i := range counters {
		counters[i].Offset = offset + uint32(8*i)
		counters[i].Wide, counters[i].Counter, counters[i].Access = true, true, ReadOnly
	}
	return counters
}

// indexedWindow returns a bank of registers, starting at offset, whose contents are selected by the block's index
// register.
func indexedWindow(offset uint32, values ...Register) []Register {
	values = counterBank(offset, values...)
	for i := range values {
		values[i].Counter, values[i].Built = false, true
	}
	return values
}

var blocks = []Block{
	{Name: "common", Base: 0x100000, Size: 0x1000,
		Doc: "Identity, capabilities and the commands that concern the whole card.", Registers: []Register{
			{Name: "magic", Offset: 0x000, Access: ReadOnly, Reset: 0x4F4C4146,
				Doc: "The letters OLAF; any other value means that this is not an OLAF bitstream."},
			{Name: "map_version", Offset: 0x004, Access: ReadOnly, Reset: versionWord, Doc: "Version of this map.",
				Fields: versionFields},
			{Name: "next", Offset: 0x008, Access: ReadOnly, Reset: 0x101000, Unit: "BAR2 bytes",
				Doc: "Address of the next block; 0 ends the list."},
			{Name: "role", Offset: 0x00C, Access: ReadOnly, Built: true, Doc: "Blocks in this build.",
				Fields: []Field{
					{Name: "accelerator", Hi: 0, Lo: 0, Doc: "OlafQueue and replication are built."},
					{Name: "generator", Hi: 1, Lo: 1, Doc: "The packet generator is built."},
				}},
			{Name: "capabilities", Offset: 0x010, Access: ReadOnly, Built: true, Doc: "Options of this build.",
				Fields: []Field{
					{Name: "model_cycles", Hi: 0, Lo: 0,
						Doc: "queue.dequeue_cycles and queue.merge_cycles are writable (a model); otherwise they " +
							"show what the logic takes."},
					{Name: "provenance", Hi: 1, Lo: 1, Doc: "Contributors of merged updates can be logged."},
					{Name: "free_on_start", Hi: 2, Lo: 2, Doc: "A slot can be freed when its frame starts to leave."},
					{Name: "fault_injection", Hi: 3, Lo: 3, Doc: "The generator obeys the fault flags of descriptors."},
					{Name: "server_model", Hi: 4, Lo: 4,
						Doc: "The model block is built: it models a parameter server behind the queue."},
					{Name: "lanes", Hi: 5, Lo: 5, Doc: "Gradient lanes are stored and merged, not only counted."},
					{Name: "aggregator", Hi: 6, Lo: 6,
						Doc: "The aggregator block is built; without it, its addresses have no registers."},
					{Name: "downlinks", Hi: 7, Lo: 7,
						Doc: "Sums can go to the workers over one link each (aggregator.results); without it, the " +
							"aggregator's registers from 0x038 on do nothing."},
					{Name: "wire_formats", Hi: 8, Lo: 8,
						Doc: "The format, tos and seg of flows and aggregator.segments are obeyed; without it, they " +
							"are ignored."},
				}},
			{Name: "build_hash", Offset: 0x014, Access: ReadOnly, Built: true,
				Doc: "First 32 bits of the bitstream's hash, or of the twin's model version."},
			{Name: "build_time", Offset: 0x018, Wide: true, Access: ReadOnly, Built: true, Unit: "s",
				Doc: "When the bitstream was built, seconds since 1970; 0 on the twin."},
			{Name: "scratch", Offset: 0x020, Access: ReadWrite, Reset: 0x5A5AA5A5,
				Doc: "Any value; used to test the path to the card."},
			{Name: "clock_hz", Offset: 0x024, Access: ReadOnly, Built: true, Unit: "Hz",
				Doc: "Clock of the data path, nominally 250,000,000."},
			{Name: "max_packet_bytes", Offset: 0x028, Access: ReadOnly, Built: true, Unit: "B",
				Doc: "Largest L2 frame, without FCS, that every stage of this build passes."},
			{Name: "cycles", Offset: 0x030, Wide: true, Access: ReadOnly, Built: true, Unit: "cycles",
				Doc: "Free-running count since power-up; reading the low word latches the high word."},
			{Name: "command", Offset: 0x038, Access: Command, Doc: "Commands that act on all blocks in the same cycle.",
				Fields: []Field{
					{Name: "snapshot", Hi: 0, Lo: 0,
						Doc: "Latch every counter of every bank. Together with clear: latch, then clear."},
					{Name: "clear", Hi: 1, Lo: 1,
						Doc: "Zero the running counters, peaks and per-cluster counters; the latched values stay."},
					{Name: "reset", Hi: 2, Lo: 2,
						Doc: "Abort the generator, empty the queue without counting, and return every register and " +
							"memory to its reset value. Wait 1 ms afterwards."},
				}},
			{Name: "errors", Offset: 0x040, Access: ClearOnOne, Doc: "Sticky summary of errors.",
				Fields: []Field{
					{Name: "address", Hi: 0, Lo: 0, Doc: "An access to an address without a register."},
					{Name: "read_only", Hi: 1, Lo: 1, Doc: "A write to a read-only register."},
					{Name: "state", Hi: 2, Lo: 2, Doc: "A write or command was refused because of the block's state."},
					{Name: "value", Hi: 3, Lo: 3, Doc: "A write was refused because of its value."},
					{Name: "queue", Hi: 8, Lo: 8, Doc: "queue.errors gained a bit."},
					{Name: "replication", Hi: 9, Lo: 9, Doc: "A write to the replication block was refused."},
					{Name: "generator", Hi: 10, Lo: 10, Doc: "generator.events gained an error bit."},
					{Name: "aggregator", Hi: 11, Lo: 11, Doc: "A write to the aggregator block was refused."},
				}},
			{Name: "error_address", Offset: 0x044, Access: ReadOnly, Built: true, Unit: "BAR2 bytes",
				Doc: "Address of the latest refused access; 0 if there was none."},
		}},
	{Name: "queue", Base: 0x101000, Size: 0x1000,
		Doc: "OlafQueue with the counters of VNP4-1 and VNP4-2 around it. Its configuration can't change while it " +
			"runs: registers marked idle are writable only while control.enable is 0 and the queue is empty.",
		Registers: joinRegisters(
			blockHeader(0x4F4C5155, 0x102000),
			[]Register{
				{Name: "built_slots", Offset: 0x00C, Access: ReadOnly, Built: true,
					Doc: "Slots in this build; the limit of depth."},
				{Name: "built_clusters", Offset: 0x010, Access: ReadOnly, Built: true,
					Doc: "Cluster ids run from 0 to this minus 1, at most 65,536."},
				{Name: "built_lanes", Offset: 0x014, Access: ReadOnly, Built: true,
					Doc: "Gradient lanes that a slot stores."},
				{Name: "control", Offset: 0x020, Access: ReadWrite, Doc: "Settings that may change while updates flow.",
					Fields: []Field{
						{Name: "enable", Hi: 0, Lo: 0,
							Doc: "Admit updates. While 0 the queue drains, and arriving updates are counted in lost_before_engine."},
						{Name: "freeze", Hi: 1, Lo: 1,
							Doc: "Stop the queue's clock for the inspector: nothing is admitted, starts or " +
								"leaves; a frame on the wire pauses. Arriving updates are counted in " +
								"lost_before_engine."},
					}},
				{Name: "status", Offset: 0x024, Access: ReadOnly, Built: true, Doc: "State of the queue.",
					Fields: []Field{
						{Name: "running", Hi: 0, Lo: 0, Doc: "Enabled and not frozen."},
						{Name: "empty", Hi: 1, Lo: 1, Doc: "No slot is in use."},
						{Name: "frozen", Hi: 2, Lo: 2, Doc: "The queue's clock is stopped."},
						{Name: "draining", Hi: 3, Lo: 3, Doc: "Disabled but not yet empty."},
					}},
				{Name: "command", Offset: 0x028, Access: Command, Doc: "Commands; each acts once.", Fields: []Field{
					{Name: "flush", Hi: 0, Lo: 0, Doc: "Discard all updates and count them as flushed."},
				}},
				{Name: "errors", Offset: 0x02C, Access: ClearOnOne, Doc: "Sticky errors of this block.",
					Fields: []Field{
						{Name: "state", Hi: 0, Lo: 0,
							Doc: "A write was refused because the queue was enabled or not empty."},
						{Name: "value", Hi: 1, Lo: 1,
							Doc: "A write was refused because its value is outside the built limits."},
						{Name: "not_frozen", Hi: 2, Lo: 2, Doc: "The inspector was used while the queue ran."},
						{Name: "cluster_range", Hi: 3, Lo: 3,
							Doc: "The tables named a cluster beyond built_clusters; its updates were bypassed."},
					}},
				{Name: "mode", Offset: 0x030, Access: ReadWrite, Idle: true, Doc: "Queue discipline and its options.",
					Fields: []Field{
						{Name: "discipline", Hi: 7, Lo: 0, Doc: "Algorithm of the queue.", Values: disciplines},
						{Name: "reward_filter", Hi: 8, Lo: 8, Doc: "Compare rewards before merging (olaf only)."},
						{Name: "free_on_start", Hi: 9, Lo: 9,
							Doc: "Free a slot when its frame starts to leave, as ns-3 does; needs the capability."},
						{Name: "provenance", Hi: 10, Lo: 10,
							Doc: "Log the contributors of every update; needs the capability."},
					}},
				{Name: "depth", Offset: 0x034, Access: ReadWrite, Idle: true, Reset: 8, Unit: "slots",
					Doc: "Slots to use, 1 to built_slots, including the leaving one."},
				{Name: "reward_threshold", Offset: 0x038, Access: ReadWrite, Idle: true, Unit: "Q24.8",
					Doc: "Threshold of the reward filter, signed but not negative."},
				{Name: "limiter_control", Offset: 0x040, Access: ReadWrite, Idle: true,
					Doc: "Output limiter, a serialiser that saves up no credit.", Fields: []Field{
						{Name: "enable", Hi: 0, Lo: 0, Doc: "Pace the output; while 0, the output moves 64 bytes a " +
							"cycle."},
					}},
				{Name: "limiter_increment", Offset: 0x044, Access: ReadWrite, Idle: true, Reset: 64 << 24,
					Unit: "B/cycle in 8.24", Doc: "Output rate; 40 Gb/s at 250 MHz is 20.0. Not 0, at most 64.0."},
				{Name: "limiter_overhead", Offset: 0x048, Access: ReadWrite, Idle: true, Unit: "B",
					Doc: "Bytes charged for every frame in addition to its L2 bytes, at most 255: 0, or 24 for FCS, " +
						"preamble and gap."},
				{Name: "dequeue_cycles", Offset: 0x050, Access: ReadWrite, Idle: true, Unit: "cycles",
					Doc: "Busy time of the output per departure, at most 255. Read-only without the capability model_cycles."},
				{Name: "merge_cycles", Offset: 0x054, Access: ReadWrite, Idle: true, Unit: "cycles",
					Doc: "Busy time of the output per merge or replacement, at most 255. Read-only without the capability model_cycles."},
				{Name: "occupancy", Offset: 0x060, Access: ReadOnly, Built: true, Unit: "slots",
					Doc: "Slots in use now; ACKs carry this number."},
				{Name: "peak_occupancy", Offset: 0x064, Access: ReadOnly, Built: true, Unit: "slots",
					Doc: "Most slots in use since the last clear."},
				{Name: "active_clusters", Offset: 0x068, Access: ReadOnly, Built: true,
					Doc: "Clusters with an update in the queue; ACKs carry this number."},
				{Name: "inspect_index", Offset: 0x080, Access: ReadWrite,
					Doc: "Slot that the inspector shows, in departure order from 0; writing it fills the inspect " +
						"registers. Refused unless frozen."},
				{Name: "inspect_state", Offset: 0x084, Access: ReadOnly, Built: true, Doc: "Content of the slot.",
					Fields: []Field{
						{Name: "valid", Hi: 0, Lo: 0, Doc: "The index is below the occupancy and the queue is frozen."},
						{Name: "leaving", Hi: 1, Lo: 1, Doc: "The update is locked."},
						{Name: "retransmission", Hi: 2, Lo: 2, Doc: "Its retransmission bit."},
						{Name: "saturated", Hi: 3, Lo: 3, Doc: "Its count saturated."},
					}},
				{Name: "inspect_identity", Offset: 0x088, Access: ReadOnly, Built: true, Doc: "Worker and cluster of " +
					"the update.",
					Fields: []Field{
						{Name: "worker", Hi: 15, Lo: 0, Doc: "Newest contributor."},
						{Name: "cluster", Hi: 31, Lo: 16, Doc: "Cluster id."},
					}},
				{Name: "inspect_size", Offset: 0x08C, Access: ReadOnly, Built: true, Doc: "Size of the content.",
					Fields: []Field{
						{Name: "count", Hi: 15, Lo: 0, Doc: "Updates merged."},
						{Name: "lanes", Hi: 31, Lo: 16, Doc: "Gradient lanes."},
					}},
				{Name: "inspect_sequence", Offset: 0x090, Access: ReadOnly, Built: true,
					Doc: "Sequence of the newest contributor."},
				{Name: "inspect_reward", Offset: 0x094, Access: ReadOnly, Built: true, Unit: "Q24.8",
					Doc: "Sum of rewards."},
				{Name: "inspect_generation", Offset: 0x098, Wide: true, Access: ReadOnly, Built: true, Unit: "ns",
					Doc: "Generation time of the newest contributor."},
				{Name: "inspect_appended", Offset: 0x0A0, Wide: true, Access: ReadOnly, Built: true, Unit: "cycles",
					Doc: "When the slot was filled, in common.cycles."},
				{Name: "cluster_index", Offset: 0x0C0, Access: ReadWrite,
					Doc: "Cluster that the cluster registers show, below built_clusters; writing it latches them."},
			},
			indexedWindow(0x0C8,
				Register{Name: "cluster_in", Doc: "Updates of the cluster that reached the queue."},
				Register{Name: "cluster_appended", Doc: "Of these, appended."},
				Register{Name: "cluster_aggregated", Doc: "Of these, merged."},
				Register{Name: "cluster_replaced", Doc: "Of these, replaced an older update of the same worker."},
				Register{Name: "cluster_replaced_reward", Doc: "Of these, replaced one by reward."},
				Register{Name: "cluster_dropped_full", Doc: "Of these, dropped because no slot was free."},
				Register{Name: "cluster_dropped_reward", Doc: "Of these, dropped by reward."},
				Register{Name: "cluster_dropped_mismatch", Doc: "Of these, dropped because of another lane count."},
				Register{Name: "cluster_delivered_frames", Doc: "Frames of the cluster that left."},
				Register{Name: "cluster_delivered_updates", Doc: "Sum of their counts."},
				Register{Name: "cluster_last_departure", Unit: "cycles",
					Doc: "When the last one left, in common.cycles; 0 if none left."},
			),
			counterBank(0x200,
				Register{Name: "snapshot_cycle", Unit: "cycles", Doc: "common.cycles at the snapshot."},
				Register{Name: "covered_cycles", Unit: "cycles", Doc: "Cycles since the last clear."},
				Register{Name: "in", Unit: "updates",
					Doc: "Updates that reached the engine: the sum of the seven classes."},
				Register{Name: "in_bytes", Unit: "B", Doc: "Their L2 bytes."},
				Register{Name: "appended", Unit: "updates", Doc: "Took a free slot."},
				Register{Name: "aggregated", Unit: "updates", Doc: "Merged into a waiting update."},
				Register{Name: "replaced", Unit: "updates", Doc: "Replaced a waiting update of the same worker."},
				Register{Name: "replaced_reward", Unit: "updates", Doc: "Replaced a waiting update by reward."},
				Register{Name: "dropped_full", Unit: "updates", Doc: "Found no free slot."},
				Register{Name: "dropped_reward", Unit: "updates", Doc: "Dropped by reward."},
				Register{Name: "dropped_mismatch", Unit: "updates",
					Doc: "Had another lane count than the waiting update."},
				Register{Name: "delivered_frames", Unit: "frames", Doc: "Frames whose last bit left."},
				Register{Name: "delivered_bytes", Unit: "B", Doc: "Their L2 bytes."},
				Register{Name: "delivered_updates", Unit: "updates", Doc: "Sum of their counts."},
				Register{Name: "flushed_frames", Unit: "frames", Doc: "Frames discarded by flush."},
				Register{Name: "flushed_updates", Unit: "updates", Doc: "Sum of their counts."},
				Register{Name: "discarded_updates", Unit: "updates",
					Doc: "Sum of the counts that replacements of either kind removed."},
				Register{Name: "queued_frames", Gauge: true, Unit: "frames", Doc: "Slots in use at the snapshot."},
				Register{Name: "queued_updates", Gauge: true, Unit: "updates", Doc: "Sum of their counts."},
				Register{Name: "carried_frames", Unit: "frames",
					Doc: "Slots that were in use at the last clear; they add to appended in the identity of frames."},
				Register{Name: "carried_updates", Unit: "updates", Doc: "Sum of their counts."},
				Register{Name: "bypassed", Unit: "frames",
					Doc: "Frames that the engine did not process: not OLAF, or from an unknown source."},
				Register{Name: "malformed", Unit: "frames",
					Doc: "OLAF frames with a wrong checksum or length; dropped."},
				Register{Name: "misidentified", Unit: "updates",
					Doc: "Updates whose header disagreed with the tables; forwarded with the tables' identity."},
				Register{Name: "lost_before_engine", Unit: "frames",
					Doc: "Updates that arrived while the queue was disabled or frozen."},
				Register{Name: "lane_saturations", Doc: "Gradient sums that saturated."},
				Register{Name: "reward_saturations", Doc: "Reward sums that saturated."},
				Register{Name: "count_saturations", Doc: "Counts that saturated; they invalidate the identity over " +
					"counts."},
				Register{Name: "locked_collisions", Unit: "updates",
					Doc: "Arrivals whose cluster had an update leaving and none waiting."},
				Register{Name: "busy_cycles", Unit: "cycles",
					Doc: "Output cycles that the delivered frames took, rounded down."},
				Register{Name: "stall_cycles", Unit: "cycles",
					Doc: "Output cycles booked by dequeue and merge work."},
				Register{Name: "occupancy_integral", Unit: "slot cycles",
					Doc: "Sum over all cycles of the updates in the queue, including the leaving one; divided by " +
						"covered_cycles, it is the mean."},
				Register{Name: "acks_in", Unit: "frames", Doc: "ACKs that came from the parameter server."},
				Register{Name: "acks_out", Unit: "frames", Doc: "Copies sent to workers."},
				Register{Name: "acks_no_group", Unit: "frames",
					Doc: "ACKs whose source is not a known server or whose cluster has no multicast group; dropped."},
			),
		)},
	{Name: "replication", Base: 0x102000, Size: 0x1000,
		Doc: "Multicast groups behind VNP4-2, which cannot replicate by itself. A cluster uses the group that the " +
			"tables name; if they name none, the group with the cluster's id.", Registers: joinRegisters(
			blockHeader(0x4F4C5250, 0x103000),
			[]Register{
				{Name: "built_groups", Offset: 0x00C, Access: ReadOnly, Built: true,
					Doc: "Group ids run from 0 to this minus 1."},
				{Name: "built_members", Offset: 0x010, Access: ReadOnly, Built: true,
					Doc: "Most members of one group."},
				{Name: "command", Offset: 0x020, Access: Command, Doc: "Commands; each acts once.", Fields: []Field{
					{Name: "clear", Hi: 0, Lo: 0, Doc: "Remove every group."},
				}},
				{Name: "group_index", Offset: 0x024, Access: ReadWrite,
					Doc: "Group that the next registers refer to; writing it sets member_index to 0."},
				{Name: "group_size", Offset: 0x028, Access: ReadWrite,
					Doc: "Members of the group, at most built_members; new ones are worker 0 on port 0; 0 removes the group."},
				{Name: "member_index", Offset: 0x02C, Access: ReadWrite,
					Doc: "Member that member_data refers to, at most group_size."},
				{Name: "member_data", Offset: 0x030, Access: ReadWrite,
					Doc: "One member; each access advances member_index by one.", Fields: []Field{
						{Name: "worker", Hi: 15, Lo: 0,
							Doc: "Worker id within the cluster (P4Runtime replica instance)."},
						{Name: "port", Hi: 23, Lo: 16, Doc: "Egress port."},
					}},
			},
		)},
	{Name: "generator", Base: 0x103000, Size: 0x1000,
		Doc: "Packet generator: fires descriptors at absolute cycle times. Idle registers and its memories are " +
			"writable only while it is neither armed nor running.", Registers: joinRegisters(
			blockHeader(0x4F4C5047, 0x104000),
			[]Register{
				{Name: "built_flows", Offset: 0x00C, Access: ReadOnly, Built: true,
					Doc: "Flow entries, at most 65,536."},
				{Name: "built_descriptors", Offset: 0x010, Access: ReadOnly, Built: true,
					Doc: "Descriptors that fit into memory."},
				{Name: "built_templates", Offset: 0x014, Access: ReadOnly, Built: true,
					Doc: "Payload templates, built-in template 0 included."},
				{Name: "control", Offset: 0x020, Access: ReadWrite, Idle: true, Doc: "Destination of frames.",
					Fields: []Field{
						{Name: "wire", Hi: 0, Lo: 0,
							Doc: "Out of the second network port, to another card's queue; while 0, into this card's " +
								"queue."},
					}},
				{Name: "command", Offset: 0x024, Access: Command, Doc: "Commands; each acts once.", Fields: []Field{
					{Name: "arm", Hi: 0, Lo: 0,
						Doc: "From idle, done or error: check flows and descriptors, and stop the run clock at 0."},
					{Name: "start", Hi: 1, Lo: 1, Doc: "From armed: start the run clock and send."},
					{Name: "stop", Hi: 2, Lo: 2,
						Doc: "Finish the current packet, then go to done. Does nothing when done or idle; from " +
							"armed, go to idle."},
					{Name: "abort", Hi: 3, Lo: 3, Doc: "Stop at once in any state and go to idle."},
				}},
				{Name: "state", Offset: 0x028, Access: ReadOnly, Built: true, Doc: "State of the generator.",
					Fields: []Field{
						{Name: "state", Hi: 3, Lo: 0, Doc: "State machine.",
							Values: []string{"idle", "armed", "running", "stopping", "done", "error"}},
					}},
				{Name: "events", Offset: 0x02C, Access: ClearOnOne, Doc: "Sticky.", Fields: []Field{
					{Name: "done", Hi: 0, Lo: 0,
						Doc: "All descriptors were sent, or stop_after of them, or those before stop."},
					{Name: "error", Hi: 1, Lo: 1, Doc: "The state is or was error; one of the next bits gives the " +
						"reason."},
					{Name: "underrun", Hi: 2, Lo: 2, Doc: "A descriptor was due that had not been loaded."},
					{Name: "unsorted", Hi: 3, Lo: 3, Doc: "A descriptor's time is before its predecessor's."},
					{Name: "bad_flow", Hi: 4, Lo: 4,
						Doc: "A descriptor names a flow that is not enabled or not below flows."},
					{Name: "bad_length", Hi: 5, Lo: 5,
						Doc: "A frame length is below 64 B, above max_packet_bytes, or not a whole number of lanes."},
					{Name: "refused", Hi: 8, Lo: 8, Doc: "A write or command was not allowed in the state."},
					{Name: "value", Hi: 9, Lo: 9,
						Doc: "A write was refused because its value is outside the built limits."},
				}},
				{Name: "stop_after", Offset: 0x030, Wide: true, Access: ReadWrite, Idle: true, Unit: "packets",
					Doc: "Packets after which to stop; 0 means all descriptors."},
				{Name: "flows", Offset: 0x038, Access: ReadWrite, Idle: true,
					Doc: "Flow entries in use, at most built_flows."},
				{Name: "descriptors", Offset: 0x03C, Access: ReadWrite, Idle: true,
					Doc: "Descriptors to play, at most built_descriptors."},
				{Name: "start_cycle", Offset: 0x040, Wide: true, Access: ReadOnly, Built: true, Unit: "cycles",
					Doc: "common.cycles when the run clock was last at 0; generation stamps and descriptor times count from there."},
				{Name: "mem_select", Offset: 0x080, Access: ReadWrite,
					Doc: "Memory behind the proxy; writing it sets mem_address to 0.", Fields: []Field{
						{Name: "memory", Hi: 1, Lo: 0, Doc: "Selected memory.",
							Values: []string{"descriptors", "flows", "templates"}},
					}},
				{Name: "mem_address", Offset: 0x084, Access: ReadWrite, Unit: "words",
					Doc: "Word that mem_data refers to: entry number times words per entry."},
				{Name: "mem_data", Offset: 0x088, Access: ReadWrite,
					Doc: "One word; each access advances mem_address by one. WriteBurst uses it. Words that were never " +
						"written read 0."},
				{Name: "mem_burst", Offset: 0x08C, Access: ReadOnly, Built: true, Unit: "words",
					Doc: "Words to write before mem_status must be polled; 0 means no limit."},
				{Name: "mem_length", Offset: 0x090, Access: ReadWrite, Unit: "words",
					Doc: "Number of words from address 0 that mem_command.crc covers."},
				{Name: "mem_command", Offset: 0x094, Access: Command, Doc: "Commands that act on the selected memory.",
					Fields: []Field{
						{Name: "crc", Hi: 0, Lo: 0, Doc: "Compute mem_crc over mem_length words."},
						{Name: "clear", Hi: 1, Lo: 1, Doc: "Clear the memory."},
					}},
				{Name: "mem_status", Offset: 0x098, Access: ReadOnly, Built: true, Doc: "State of the proxy.",
					Fields: []Field{
						{Name: "busy", Hi: 0, Lo: 0, Doc: "A command or burst is in progress."},
					}},
				{Name: "mem_crc", Offset: 0x09C, Access: ReadOnly, Built: true,
					Doc: "CRC-32 (IEEE 802.3) of the words as little-endian bytes."},
			},
			counterBank(0x200,
				Register{Name: "sent_packets", Unit: "packets", Doc: "Packets sent since the last clear."},
				Register{Name: "sent_bytes", Unit: "B", Doc: "Their L2 bytes."},
				Register{Name: "late_packets", Unit: "packets",
					Doc: "Packets that left after their descriptor's time because the bus was still busy with their predecessor."},
				Register{Name: "late_cycles_max", Unit: "cycles", Doc: "Longest such delay."},
				Register{Name: "late_cycles_sum", Unit: "cycles", Doc: "Sum of such delays."},
			),
		)},
	{Name: "model", Base: 0x104000, Size: 0x1000,
		Doc: "Model of the parameter server behind the queue, for builds without a real one (capability server_model).",
		Registers: joinRegisters(
			lastHeader(0x4F4C4D4F, 0x105000),
			[]Register{
				{Name: "control", Offset: 0x020, Access: ReadWrite, Doc: "Behaviour of the server.", Fields: []Field{
					{Name: "ack", Hi: 0, Lo: 0, Doc: "Answer every delivered update with an ACK."},
				}},
				{Name: "ack_delay", Offset: 0x024, Access: ReadWrite, Reset: 250, Unit: "cycles",
					Doc: "Time from the last bit of an update at the server to the ACK's passage through VNP4-2."},
			},
		)},
	{Name: "aggregator", Base: 0x105000, Size: 0x1000, Needs: 1 << 6,
		Doc: "A switch program in front of the queue (capability aggregator): it adds up the updates of a cluster, " +
			"each cluster in its own segment, and its sums reach the queue as one update each. Updates that reach it " +
			"while the queue is disabled or frozen are counted in queue.lost_before_engine. " +
			"Registers marked idle are writable when the queue's are.", Registers: joinRegisters(
			blockHeader(0x41474752, 0),
			[]Register{
				{Name: "built_slots", Offset: 0x00C, Access: ReadOnly, Built: true,
					Doc: "Segments in this build; with a program, clusters run from 0 to this minus 1."},
				{Name: "built_programs", Offset: 0x010, Access: ReadOnly, Built: true,
					Doc: "Bit n is set if the program with code n is built; bit 0 (pass, which forwards updates) is " +
						"always set."},
				{Name: "built_lanes", Offset: 0x014, Access: ReadOnly, Built: true,
					Doc: "Lanes that a segment stores."},
				{Name: "command", Offset: 0x028, Access: Command, Doc: "Commands; each acts once.", Fields: []Field{
					{Name: "clear", Hi: 0, Lo: 0,
						Doc: "Discard every partial sum; the program counts them as cleared. queue.command.flush " +
							"does the same."},
				}},
				{Name: "program", Offset: 0x030, Access: ReadWrite, Idle: true,
					Doc: "Program that processes updates in front of the queue. Enabling the queue after a change " +
						"resets the table and the counters.", Fields: []Field{
						{Name: "program", Hi: 4, Lo: 0, Doc: "The program; pass means none.", Values: programs},
					}},
				{Name: "h", Offset: 0x034, Access: ReadWrite, Idle: true, Reset: 1, Unit: "vectors",
					Doc: "Contributions that complete a sum, 1 to 65,535. As with program, a change resets the table."},
				{Name: "results", Offset: 0x038, Access: ReadWrite, Idle: true,
					Doc: "Destination of sums (capability downlinks).", Fields: []Field{
						{Name: "to_workers", Hi: 0, Lo: 0,
							Doc: "To the workers of their cluster, over one downlink each, after they have left the " +
								"queue; while 0, to the server."},
					}},
				{Name: "downlink_increment", Offset: 0x03C, Access: ReadWrite, Idle: true, Reset: 64 << 24,
					Unit: "B/cycle in 8.24",
					Doc: "Rate of each downlink, including queue.limiter_overhead; any number of sums may wait " +
						"there. Not 0, at most 64.0."},
				{Name: "segments", Offset: 0x040, Access: ReadWrite, Idle: true, Reset: 1, Unit: "segments",
					Doc: "Segments of a cluster's vector (capability wire_formats), 1 to built_slots: a flow's seg " +
						"selects one, and clusters run from 0 to built_slots divided by this, minus 1. As with " +
						"program, a change resets the table."},
				{Name: "occupied", Offset: 0x060, Access: ReadOnly, Built: true, Unit: "segments",
					Doc: "Segments that hold a partial sum now."},
				{Name: "peak_occupied", Offset: 0x064, Access: ReadOnly, Built: true, Unit: "segments",
					Doc: "Most segments with a partial sum since the last clear."},
				{Name: "downlink_waiting", Offset: 0x068, Access: ReadOnly, Built: true, Unit: "frames",
					Doc: "Sums that have left the queue and are on their way to workers."},
				{Name: "inspect_index", Offset: 0x080, Access: ReadWrite,
					Doc: "Partial sum that the inspector shows, in the order of the segments from 0; writing it " +
						"fills the inspect registers. Refused unless the queue is frozen."},
				{Name: "inspect_state", Offset: 0x084, Access: ReadOnly, Built: true, Doc: "State of the partial sum.",
					Fields: []Field{
						{Name: "valid", Hi: 0, Lo: 0,
							Doc: "The index is below the number of occupied segments, and the queue is frozen."},
					}},
				{Name: "inspect_identity", Offset: 0x088, Access: ReadOnly, Built: true, Doc: "Worker and cluster of " +
					"the sum.",
					Fields: []Field{
						{Name: "worker", Hi: 15, Lo: 0, Doc: "Newest contributor."},
						{Name: "cluster", Hi: 31, Lo: 16, Doc: "Cluster id."},
					}},
				{Name: "inspect_size", Offset: 0x08C, Access: ReadOnly, Built: true, Doc: "Size of the content.",
					Fields: []Field{
						{Name: "count", Hi: 15, Lo: 0, Doc: "Contributions."},
						{Name: "lanes", Hi: 31, Lo: 16, Doc: "Lanes that are stored."},
					}},
				{Name: "inspect_segment", Offset: 0x090, Access: ReadOnly, Built: true, Doc: "Segment of the table."},
				{Name: "inspect_generation", Offset: 0x098, Wide: true, Access: ReadOnly, Built: true, Unit: "ns",
					Doc: "Generation time of the newest contributor."},
				{Name: "inspect_since", Offset: 0x0A0, Wide: true, Access: ReadOnly, Built: true, Unit: "cycles",
					Doc: "When the first contribution arrived, in common.cycles."},
			},
			counterBank(0x200, slices.Concat(ledgerCounters(), []Register{
				{Name: "carried_vectors", Unit: "vectors",
					Doc: "Contributions in partial sums at the last clear; they add to those that arrived."},
				{Name: "dropped_vectors", Unit: "vectors",
					Doc: "Contributions in sums that the queue dropped."},
				{Name: "results_out", Unit: "frames", Doc: "Copies of sums that reached workers over downlinks."},
				{Name: "occupancy_integral", Unit: "segment cycles",
					Doc: "Sum over all cycles of the segments that hold a partial sum, up to the latest update that " +
						"reached the program or the latest discard, so that the value does not depend on when it is " +
						"read. Since version 1.3 of the block."},
				{Name: "occupancy_cycles", Unit: "cycles",
					Doc: "Cycles that occupancy_integral covers, so that the quotient is the mean: from the first " +
						"update since the last clear, or from the clear itself if it kept partial sums, to the " +
						"latest update, or to a later discard of sums. Since version 1.4 of the block."},
			})...),
		)},
}

// LedgerCounters is the maximum number of counters that a switch program may declare.
const LedgerCounters = 32

// ledgerCounters returns the registers for the counters of a switch program. The names of the counters are in the
// program's description.
func ledgerCounters() []Register {
	counters := make([]Register, LedgerCounters)
	for i := range counters {
		counters[i] = Register{Name: fmt.Sprintf("count_%d", i), Gauge: true,
			Doc: fmt.Sprintf("Counter %d of the program, in the order of 'olafctl system program show'; 0 if it has "+
				"fewer.", i)}
	}
	return counters
}

var records = []Record{
	{Name: "descriptor", Words: DescriptorWords, Doc: "One packet to send (memory 0).", Fields: []RecordField{
		{Name: "time_low", Word: 0, Hi: 31, Lo: 0, Unit: "cycles",
			Doc: "When the frame enters the data path, on the run clock: bits 31:0 of 48. Times must not decrease."},
		{Name: "time_high", Word: 1, Hi: 15, Lo: 0, Unit: "cycles", Doc: "Bits 47:32."},
		{Name: "flow", Word: 1, Hi: 31, Lo: 16, Doc: "Flow entry."},
		{Name: "length", Word: 2, Hi: 15, Lo: 0, Unit: "B", Doc: "L2 bytes without FCS; 0 means the flow's."},
		{Name: "flags", Word: 2, Hi: 31, Lo: 16,
			Doc: "Bit 0 retransmission; faults, obeyed with the capability fault_injection: bit 1 wrong IPv4 " +
				"checksum, bit 2 wrong UDP length, bit 3 not OLAF (another UDP port)."},
		{Name: "sequence", Word: 3, Hi: 31, Lo: 0, Doc: "Sequence in the header."},
		{Name: "reward", Word: 4, Hi: 31, Lo: 0, Unit: "Q24.8", Doc: "Reward in the header, signed."},
	}},
	{Name: "flow", Words: FlowWords, Doc: "One sender (memory 1).", Fields: []RecordField{
		{Name: "source_ip", Word: 0, Hi: 31, Lo: 0, Doc: "IPv4 source, first octet in the top bits."},
		{Name: "dest_ip", Word: 1, Hi: 31, Lo: 0, Doc: "IPv4 destination: the parameter server."},
		{Name: "dest_port", Word: 2, Hi: 15, Lo: 0, Doc: "UDP destination port; 20300 is OLAF."},
		{Name: "source_port", Word: 2, Hi: 31, Lo: 16, Doc: "UDP source port."},
		{Name: "worker", Word: 3, Hi: 15, Lo: 0, Doc: "Worker id in the header."},
		{Name: "cluster", Word: 3, Hi: 31, Lo: 16, Doc: "Cluster id in the header."},
		{Name: "length", Word: 4, Hi: 15, Lo: 0, Unit: "B", Doc: "L2 bytes of a frame whose descriptor has 0."},
		{Name: "template", Word: 4, Hi: 31, Lo: 16, Doc: "Payload template."},
		{Name: "source_mac_high", Word: 5, Hi: 31, Lo: 0, Doc: "Bits 47:16 of the source MAC."},
		{Name: "source_mac_low", Word: 6, Hi: 31, Lo: 16, Doc: "Bits 15:0 of the source MAC."},
		{Name: "dest_mac_high", Word: 6, Hi: 15, Lo: 0, Doc: "Bits 47:32 of the destination MAC."},
		{Name: "dest_mac_low", Word: 7, Hi: 31, Lo: 0, Doc: "Bits 31:0 of the destination MAC."},
		{Name: "enable", Word: 8, Hi: 0, Lo: 0, Doc: "The entry is in use."},
		{Name: "format", Word: 8, Hi: 15, Lo: 8,
			Doc: "Format of the frames (capability wire_formats): 0 for OLAF, n for the program with code n. Frames " +
				"of a program other than aggregator.program are bypassed."},
		{Name: "tos", Word: 8, Hi: 23, Lo: 16,
			Doc: "Type of service in the IPv4 header (capability wire_formats). A program recognises data frames of " +
				"its own format by it; other frames are bypassed."},
		{Name: "seg_low", Word: 9, Hi: 31, Lo: 0,
			Doc: "Segment of the cluster to which the frames' lanes are added (capability wire_formats), bits 31:0. " +
				"Frames beyond aggregator.segments are bypassed."},
		{Name: "seg_high", Word: 10, Hi: 31, Lo: 0, Doc: "Bits 63:32."},
	}},
	{Name: "template", Words: TemplateWords,
		Doc: "Gradient lanes of a frame, int32 in lane order, as many as fit into the frame (memory 2). Template 0 " +
			"is built in and not writable: every lane is 1.0 in Q16.16, so that a merged lane equals the count.",
		Fields: nil},
}
