// The table that says who sends from an address: the action set_worker of the first pipeline.
#pragma once
#include "counters.h"

const volatile u32 SENDERS = 1; // places in the table, a power of two

struct sender {
	u32 address; // IPv4, as on the wire; 0 is nobody's
	u16 cluster;
	u16 worker;
};

struct senders {
	u32 multiplier;
	u32 shift; // leaves as many bits of the product as there are places
	struct sender sender[];
};

struct inner {
	UINT(type, MAP_ARRAY);
	UINT(key_size, 4);
	UINT(value_size, sizeof(struct senders)); // and SENDERS of struct sender
	UINT(max_entries, 1);
};

struct {
	UINT(type, MAP_ARRAY_OF_MAPS);
	UINT(key_size, 4);
	UINT(max_entries, 1);
	struct inner *values[];
} senders SEC(".maps");

// sender_of finds who sends from an address; the table is swapped as a whole.
INLINE struct sender *sender_of(u32 address)
{
	void *inner = bpf_map_lookup_elem(&senders, &zero);
	if (!inner)
		return NULL;
	struct senders *table = bpf_map_lookup_elem(inner, &zero);
	if (!table)
		return NULL;
	u32 at = (address * table->multiplier) >> table->shift;
	for (int i = 0; i < 32; i++, at++) {
		struct sender *s = &table->sender[at & (SENDERS - 1)];
		if (s->address == address)
			return s;
		if (!s->address)
			return NULL;
	}
	return NULL;
}
