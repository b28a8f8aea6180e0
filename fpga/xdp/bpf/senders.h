// The table of senders by address: the action set_worker of the first pipeline.
#pragma once
#include "counters.h"

const volatile u32 SENDERS = 1; // places in the table, a power of two

struct sender {
	u32 address; // IPv4 address in network byte order; 0 for a free place
	u16 cluster;
	u16 worker;
};

struct senders {
	u32 multiplier;
	u32 shift; // reduces the product to as many bits as an index of a place has
	struct sender sender[];
};

struct inner {
	UINT(type, MAP_ARRAY);
	UINT(key_size, 4);
	UINT(value_size, sizeof(struct senders)); // followed by SENDERS entries of struct sender
	UINT(max_entries, 1);
};

struct {
	UINT(type, MAP_ARRAY_OF_MAPS);
	UINT(key_size, 4);
	UINT(max_entries, 1);
	struct inner *values[];
} senders SEC(".maps");

// sender_of returns the sender with an address. User space replaces the table as a whole.
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
