// The decision log. Include it after counters.h. Records that do not fit are counted as unlogged.
#pragma once
#include "counters.h"

const volatile bool LOGGED = 0; // write every decision to the log

enum kind { ARRIVAL, START, RELEASE, FLUSH };

// record is one entry of the decision log.
struct record {
	u64 number;
	u64 at; // ns
	u64 gen;
	u32 seq;
	s32 reward;
	s32 slot; // -1 for none
	u32 saturated;
	u16 cluster;
	u16 worker;
	u16 count;
	u16 lanes;
	u8 kind;
	u8 class;
	u8 flags;
	u8 pad[5];
};

struct {
	UINT(type, MAP_RINGBUF);
	UINT(max_entries, 4096);
} decisions SEC(".maps");

// tell writes a decision to the log, or counts it as unlogged if there is no room.
INLINE void tell(struct record *r, struct bank *b)
{
	if (LOGGED && bpf_ringbuf_output(&decisions, r, sizeof(*r), RINGBUF_NO_WAKEUP))
		b->unlogged++;
}
