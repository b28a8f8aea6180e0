// Writes the queue's status into an ACK to a worker if the queue is the most congested one on the path.
#pragma once
#include "queue.h"

enum { MAX_OCCUPANCY = (1 << 24) - 1, MAX_ACTIVE = (1 << 16) - 1, STATUS_FULL = 1 << 7 };

INLINE u32 at_most(u32 v, u32 most)
{
	return v < most ? v : most;
}

// mark runs on frames from the server and passes all of them on. It reads the queue without its lock, since a status is old
// anyway when it arrives.
SEC("xdp.frags")
int mark(struct xdp_md *ctx)
{
	void *data = (void *)(u64)ctx->data, *end = (void *)(u64)ctx->data_end;
	struct queue *q = bpf_map_lookup_elem(&queue, &zero);
	struct config *c = bpf_map_lookup_elem(&config, &zero);
	if (!q || !c || !claims(data, end, OLAF_MAGIC) || data + HEADER_BYTES + STATUS_BYTES > end)
		return XDP_PASS;
	u8 bits = FIELD(data, OFF_BITS, u8);
	if (bits >> 6 != 1 || (bits >> 4 & 3) != KIND_ACK)
		return XDP_PASS;

	u64 old = be64(FIELD(data, HEADER_BYTES, u64));
	u32 slots = at_most(c->depth, MAX_ACTIVE), active = at_most(q->active, MAX_ACTIVE);
	u32 occupied = at_most(q->waiting + (q->leaving >= 0 ? c->holds : 0), MAX_OCCUPANCY);
	u64 old_slots = old >> 8 & MAX_ACTIVE, old_active = old >> 24 & MAX_ACTIVE;
	if (old_slots && active * old_slots <= old_active * slots)
		return XDP_PASS;
	u8 full = occupied >= c->depth ? STATUS_FULL : 0;
	FIELD(data, HEADER_BYTES, u64) = be64((u64)occupied << 40 | (u64)active << 24 | (u64)slots << 8 | full);
	FIELD(data, OFF_UDP_CHECKSUM, u16) = 0;
	return XDP_PASS;
}
