// The queue that the disciplines share: slots, departure order, clusters, counters and log (docs/reference/semantics.md, Enqueue).
#pragma once
#include "kernel.h"
#include "lanes.h"
#include "wire.h"

// Constants that the loader sets. The verifier knows their values, so that sizes of maps may depend on them.
const volatile u32 SLOTS = 1;	    // places for frames, including the one on the wire
const volatile u32 CLUSTERS = 1;    // cluster ids run from 0 to CLUSTERS - 1
const volatile u32 LANES = 0;	    // lanes that a slot stores
const volatile u32 FRAME_LANES = 1; // lanes that a frame may have

enum class {
	APPENDED,
	AGGREGATED,
	REPLACED,
	REPLACED_REWARD,
	DROPPED_FULL,
	DROPPED_REWARD,
	DROPPED_MISMATCH,
	CLASSES,
};

// bank contains the counters of one processor. The loader finds the counters by these names. The classes come first, in their
// order.
struct bank {
	u64 appended;
	u64 aggregated;
	u64 replaced;
	u64 replaced_reward;
	u64 dropped_full;
	u64 dropped_reward;
	u64 dropped_mismatch;
	u64 in_bytes;
	u64 accepted_updates;
	u64 discarded_updates;
	u64 started_frames;
	u64 delivered_frames;
	u64 delivered_bytes;
	u64 delivered_updates;
	u64 flushed_frames;
	u64 flushed_updates;
	u64 lane_saturations;
	u64 reward_saturations;
	u64 count_saturations;
	u64 locked_collisions;
	u64 bypassed;
	u64 foreign; // of these, frames that are not OLAF's
	u64 malformed;
	u64 misidentified;
	u64 beyond_clusters;
	u64 lost_before_engine;
	u64 unlogged; // decisions for which the log had no room
};

#include "counters.h"
#include "log.h"
#include "senders.h"

// config is set by user space. Only running may be changed while the queue runs.
struct config {
	u32 running; // admit updates
	u32 depth;   // slots in use
	u32 ring;    // places in use: one more if a frame on the wire occupies no slot
	u32 holds;   // slots that a frame on the wire occupies: 1 or 0
	u32 filter;
	s32 threshold; // Q24.8
};

// outcome is a discipline's decision about an arrival. It is in the queue's memory, about which the verifier assumes nothing, so
// that the many paths to a decision become one path afterwards.
struct outcome {
	u32 class;
	u32 place; // place of the update; NEVER if it was dropped
	u32 discarded;
	u32 saturated; // lanes
	u8 merge;      // add to the content of the place instead of replacing it
	u8 collision;
	u8 reward_saturated;
	u8 count_saturated;
	u32 pad;
};

// queue is the state that changes with every decision, under its lock.
struct queue {
	struct bpf_spin_lock lock;
	u32 bank;    // index of the bank in use
	u64 number;  // number of the next decision
	u32 head;    // place of the next frame to leave
	u32 waiting; // frames from head on
	s32 leaving; // place of the frame on the wire, or -1
	u32 active;  // clusters with an update in the queue
	u32 peak;    // most slots in use since the last clear
	u32 epoch;   // counts how often the clusters' counters were cleared
	u32 era;     // counts the flushes
	u32 pad;
	u64 updates; // sum of the counts in the queue
	u64 settled; // ns, end of the integral of occupancy
	u64 occupancy;
	struct outcome outcome; // of the current decision
};

// place is one slot. Its lanes follow the structure.
struct place {
	u64 header[HEADER_BYTES / 8]; // of the newest contributor, unchanged
	u64 gen;
	u64 appended; // ns
	u32 seq;
	s32 reward;
	s32 owner; // R[u]: the only contributor, or -1
	u16 cluster;
	u16 worker;
	u16 count;
	u16 lanes;
	u8 flags;
	u8 pad[3];
	u64 reserved[2];
};

// cluster is the state of one cluster. Its frames in the queue are valid for the given era, so that a flush need not visit all
// clusters, and its counters are valid for the given epoch.
struct cluster {
	u32 era;
	u32 waiting; // place of its waiting update plus one, 0 for none
	u32 inside;  // frames in the queue, waiting or leaving
	u32 epoch;
	u64 class[CLASSES];
	u64 delivered_frames;
	u64 delivered_updates;
	u64 last_departure; // ns
};

struct {
	UINT(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct config);
	UINT(max_entries, 1);
	UINT(map_flags, MAP_MMAPABLE);
} config SEC(".maps");

struct {
	UINT(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct queue);
	UINT(max_entries, 1);
} queue SEC(".maps");

struct {
	UINT(type, MAP_ARRAY);
	UINT(key_size, 4);
	UINT(value_size, sizeof(struct place)); // SLOTS of them, each with its lanes
	UINT(max_entries, 1);
} slots SEC(".maps");

struct {
	UINT(type, MAP_ARRAY);
	UINT(key_size, 4);
	UINT(value_size, sizeof(struct cluster)); // CLUSTERS of them
	UINT(max_entries, 1);
} clusters SEC(".maps");

// STRIDE is the size of a place with its lanes, a multiple of 8.
#define STRIDE (sizeof(struct place) + LANE_WORDS(LANES) * sizeof(u64))

#define PLACE(slots, i) ((struct place *)((slots) + (u64)(i) * STRIDE))
#define LANES_OF(place) ((u64 *)((place) + 1))

// NEVER is a place that does not exist. Indices read from a map are checked against their limits, as the verifier demands, and
// an index beyond them is counted as a fault.
#define NEVER 0xffffffff

struct memory {
	struct config *config;
	struct queue *queue;
	void *slots;
	struct cluster *clusters;
};

INLINE bool open_memory(struct memory *m)
{
	m->config = bpf_map_lookup_elem(&config, &zero);
	m->queue = bpf_map_lookup_elem(&queue, &zero);
	m->slots = bpf_map_lookup_elem(&slots, &zero);
	m->clusters = bpf_map_lookup_elem(&clusters, &zero);
	return m->config && m->queue && m->slots && m->clusters;
}

// settle integrates occupancy up to now. The clocks of processors may differ slightly; the integral never goes backwards.
INLINE void settle(struct queue *q, u64 now)
{
	if (now <= q->settled)
		return;
	q->occupancy += (now - q->settled) * (q->waiting + (q->leaving >= 0));
	q->settled = now;
}

// enter resets the state of a cluster if a flush or a clear happened since its last update.
INLINE void enter(struct cluster *c, const struct queue *q)
{
	if (c->era != q->era) {
		c->era = q->era;
		c->waiting = c->inside = 0;
	}
	if (c->epoch != q->epoch) {
		c->epoch = q->epoch;
		__builtin_memset(c->class, 0, sizeof(*c) - __builtin_offsetof(struct cluster, class));
	}
}
