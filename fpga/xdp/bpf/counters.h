// Counters in two banks: while the program counts in one, user space reads the other. This file must be included after struct
// bank, whose members are the counters.
#pragma once
#include "kernel.h"

static const u32 zero = 0;

struct {
	UINT(type, MAP_PERCPU_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct bank);
	UINT(max_entries, 2);
} banks SEC(".maps");

// bank_of returns this processor's counters in the given bank.
INLINE struct bank *bank_of(u32 bank)
{
	bank &= 1;
	return bpf_map_lookup_elem(&banks, &bank);
}
