// xagg adds the fragments of a model from an aggregator's children, and sends each sum to the aggregator's parent once all children
// have contributed (Zhang et al., XAgg, Algorithm 1). docs/notes/kernel.md lists the differences from the paper, with reasons.
#include "kernel.h"
#include "lanes.h"
#include "wire.h"

const volatile u32 FRAGMENTS = 1;   // number of fragments in the model; each has a slot
const volatile u32 LANES = 2;	    // maximum number of lanes in a fragment
const volatile bool SATURATING = 1; // if not set, sums wrap, as published
const volatile u32 GROUP = 1024;    // packets of a child between two checks for missing ones, a power of two

// For the test that shows the race in the paper's algorithm, which does not mention a lock.
const volatile bool LOCKED = 1;
const volatile bool GATED = 0;

enum {
	OFF_FRAGMENT = OFF_SEQ,
	OFF_EPOCH = 60,
	KIND_DATA = 1,
	KIND_CONTROL = 2, // between children and the aggregator's agent in user space
	MAX_CHILDREN = 64,
};

enum { CONTROL = MALFORMED + 1 }; // a verdict that only this program uses

enum class { CONSUMED, COMPLETED, DUPLICATE, LATE, MISMATCHED, OUT_OF_RANGE, CLASSES };

// bank contains the counters of one processor. The classes come first, in the order of enum class.
struct bank {
	u64 consumed;
	u64 completed;
	u64 duplicate;
	u64 late;
	u64 mismatched;
	u64 out_of_range;
	u64 in_bytes;
	u64 abandoned; // packets inside sums that a newer epoch ended
	u64 lane_saturations;
	u64 control; // passed to the agent
	u64 bypassed;
	u64 malformed;
	u64 misidentified;
	u64 lost_before_engine;
	u64 unchecked; // ends of groups that did not fit in the queue of checks
	u64 unlogged;
};

#include "counters.h"
#include "log.h"
#include "senders.h"

// config is set by user space.
struct config {
	u32 running;
	u32 bank;     // index of the bank in use
	u32 children; // number of children that complete a sum
	u16 job;
	u16 child;	 // this aggregator's number at its parent
	u32 source;	 // addresses in sums, in network byte order
	u32 destination;
	u8 source_mac[6];
	u8 destination_mac[6];
	u32 addresses[MAX_CHILDREN]; // of this aggregator, by child, in network byte order; 0 matches every destination
};

// outcome is the decision about a packet. It is in the slot's memory, about which the verifier assumes nothing, so that the many
// paths to a decision become one path afterwards.
struct outcome {
	u32 class;
	u32 store; // the packet is the first of its epoch
	u32 saturated;
	u32 abandoned;
	u64 number;
};

// slot is the state of one fragment. The first packet of a newer epoch takes it over, so that the memory for a model need not
// be cleared between epochs.
struct slot {
	struct bpf_spin_lock lock;
	u16 epoch;
	u16 lanes;
	u64 bitmap; // children that contributed
	u64 gen;    // of the newest contribution
	u64 number; // number of the slot's next decision
	u32 inside; // number of children that contributed
	u32 count;  // updates
	struct outcome outcome; // of the current packet
};

// packet is an arriving packet, in the host's byte order.
struct packet {
	u64 gen;
	u32 source;
	u32 destination;
	u32 fragment;
	u16 job;
	u16 child;
	u16 count;
	u16 epoch;
	u16 lanes;
};

// check requests user space to look for missing packets in a child's group.
struct check {
	u16 child;
	u16 epoch;
	u32 fragment; // last one in the group
};

// gate stops one child's packet between reading the bitmap and adding.
struct gate {
	u32 child; // number of the child plus one
	u32 reached;
	u32 open;
	u32 expired;
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
	TYPE(value, struct slot);
	UINT(max_entries, 1); // FRAGMENTS
} slots SEC(".maps");

struct {
	UINT(type, MAP_ARRAY);
	UINT(key_size, 4);
	UINT(value_size, 8);  // LANES
	UINT(max_entries, 1); // FRAGMENTS
	UINT(map_flags, MAP_MMAPABLE);
} sums SEC(".maps");

struct {
	UINT(type, MAP_QUEUE);
	UINT(key_size, 0);
	TYPE(value, struct check);
	UINT(max_entries, 1 << 16);
} checks SEC(".maps");

struct {
	UINT(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct gate);
	UINT(max_entries, 1);
	UINT(map_flags, MAP_MMAPABLE);
} gate SEC(".maps");

struct {
	UINT(type, MAP_DEVMAP);
	TYPE(key, u32);
	TYPE(value, u32);
	UINT(max_entries, 1);
} uplink SEC(".maps");

INLINE u32 read_packet(void *data, void *end, struct packet *p)
{
	u32 lanes = LANES;
	if (!claims(data, end, XAGG_MAGIC))
		return BYPASSED;
	if (data + HEADER_BYTES > end)
		return MALFORMED;
	u8 bits = FIELD(data, OFF_BITS, u8);
	if ((bits >> 4 & 3) == KIND_CONTROL)
		return CONTROL;
	if (!outer_fits(data, end, end - data, lanes))
		return MALFORMED;
	u32 payload = end - data - HEADER_BYTES;
	p->count = be16(FIELD(data, OFF_COUNT, u16));
	if (bits >> 6 != 1 || (bits >> 4 & 3) != KIND_DATA || bits & 0x0c || (bits & 1) != (p->count > 1) || !p->count ||
	    !payload || payload % LANE_BYTES || payload > lanes * LANE_BYTES)
		return MALFORMED;
	p->gen = (u64)be16(FIELD(data, OFF_GEN, u16)) << 32 | be32(FIELD(data, OFF_GEN + 2, u32));
	p->source = FIELD(data, OFF_SOURCE, u32);
	p->destination = FIELD(data, OFF_SOURCE + 4, u32);
	p->fragment = be32(FIELD(data, OFF_FRAGMENT, u32));
	p->job = be16(FIELD(data, OFF_CLUSTER, u16));
	p->child = be16(FIELD(data, OFF_WORKER, u16));
	p->epoch = be16(FIELD(data, OFF_EPOCH, u16));
	p->lanes = payload / LANE_BYTES;
	return UPDATE;
}

static long is_open(u32 i, void *context)
{
	return *(volatile u32 *)&(*(struct gate **)context)->open != 0;
}

// pause stops one child's packet, after reading the bitmap and before adding, until the gate opens or a time limit passes.
INLINE void pause(const struct packet *p)
{
	struct gate *g = bpf_map_lookup_elem(&gate, &zero);
	if (!g || g->child != p->child + 1)
		return;
	g->reached = 1;
	for (int i = 0; i < 16 && !*(volatile u32 *)&g->open; i++)
		bpf_loop(1 << 23, is_open, &g, 0);
	g->expired += !g->open;
}

// begin starts the packet's epoch in a slot. It returns 0 if that epoch is over.
INLINE bool begin(struct slot *s, const struct packet *p, u32 children, struct outcome *o)
{
	if (s->lanes && (short)(p->epoch - s->epoch) < 0)
		return 0;
	o->abandoned = s->inside == children ? 0 : s->inside;
	s->epoch = p->epoch;
	s->lanes = p->lanes;
	s->bitmap = s->gen = 0;
	s->inside = s->count = 0;
	return 1;
}

// decide adds a packet's child to the slot's contributors. seen is the bitmap as it was last read.
INLINE void decide(struct slot *s, const struct packet *p, u64 seen, u32 children, struct outcome *o)
{
	u64 bit = 1ull << (p->child & 63);
	if (!s->lanes || p->epoch != s->epoch) {
		if (!begin(s, p, children, o)) {
			o->class = LATE;
			return;
		}
		seen = 0;
	}
	if (seen & bit) {
		o->class = DUPLICATE;
		return;
	}
	if (s->lanes != p->lanes) {
		o->class = MISMATCHED;
		return;
	}
	o->store = !s->inside;
	s->bitmap = seen | bit;
	s->count += p->count;
	if (o->store || ((p->gen - s->gen) & ((1ull << 48) - 1)) < 1ull << 47)
		s->gen = p->gen;
	o->class = ++s->inside == children ? COMPLETED : CONSUMED;
}

// add adds the packet's lanes to the sum.
INLINE void add(struct xdp_md *ctx, const struct slot *s, u64 *sum, struct outcome *o)
{
	if (o->store)
		store_lanes(ctx, HEADER_BYTES, sum, &s->lanes, LANES);
	else if (SATURATING)
		o->saturated = add_lanes(ctx, HEADER_BYTES, sum, &s->lanes, LANES);
	else
		add_lanes_wrapping(ctx, HEADER_BYTES, sum, &s->lanes, LANES);
}

// write_sum writes a completed sum into the packet that completed it.
INLINE void write_sum(struct xdp_md *ctx, const struct slot *s, u64 *sum, const struct config *c)
{
	void *data = (void *)(u64)ctx->data;
	if (data + HEADER_BYTES > (void *)(u64)ctx->data_end)
		return;
	u16 count = s->count > 0xffff ? 0xffff : s->count;
	FIELD(data, OFF_UDP_CHECKSUM, u16) = 0;
	FIELD(data, OFF_BITS, u8) = 1 << 6 | KIND_DATA << 4 | (count > 1);
	FIELD(data, OFF_CLUSTER, u16) = be16(c->job);
	FIELD(data, OFF_WORKER, u16) = be16(c->child);
	FIELD(data, OFF_COUNT, u16) = be16(count);
	FIELD(data, OFF_GEN, u16) = be16((u16)(s->gen >> 32));
	FIELD(data, OFF_GEN + 2, u32) = be32((u32)s->gen);
	send_lanes(ctx, HEADER_BYTES, sum, &s->lanes, LANES);
}

// address sets a packet's addresses, to send it to the parent.
INLINE void address(struct xdp_md *ctx, const struct config *c)
{
	void *data = (void *)(u64)ctx->data;
	if (data + HEADER_BYTES > (void *)(u64)ctx->data_end)
		return;
	__builtin_memcpy(data, c->destination_mac, 6);
	__builtin_memcpy(data + 6, c->source_mac, 6);
	FIELD(data, OFF_SOURCE, u32) = c->source;
	FIELD(data, OFF_SOURCE + 4, u32) = c->destination;
	FIELD(data, OFF_IP_CHECKSUM, u16) = 0;
	u64 sum = 0;
	for (int i = OFF_IP; i < OFF_UDP; i += 4)
		sum += FIELD(data, i, u32);
	FIELD(data, OFF_IP_CHECKSUM, u16) = ~fold(sum);
}

INLINE void tell_packet(const struct packet *p, const struct outcome *o, struct bank *b)
{
	struct record r = {
		.number = o->number,
		.at = bpf_ktime_get_ns(),
		.gen = p->gen,
		.seq = p->fragment,
		.reward = p->epoch,
		.slot = p->fragment,
		.saturated = o->saturated,
		.cluster = p->job,
		.worker = p->child,
		.count = p->count,
		.lanes = p->lanes,
		.kind = ARRIVAL,
		.class = o->class,
	};
	tell(&r, b);
}

// admit adds an identified packet to its slot.
INLINE void admit(struct xdp_md *ctx, const struct packet *p, const struct config *c, struct outcome *o)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &p->fragment);
	u64 *sum = bpf_map_lookup_elem(&sums, &p->fragment);
	*o = (struct outcome){.class = OUT_OF_RANGE};
	if (!s || !sum || p->child >= MAX_CHILDREN || p->child >= c->children)
		return;
	u32 children = c->children;
	u64 seen = s->bitmap;
	if (GATED)
		pause(p);

	if (LOCKED) {
		bpf_spin_lock(&s->lock);
		seen = s->bitmap;
	}
	struct outcome *here = &s->outcome;
	*here = (struct outcome){.number = s->number++};
	decide(s, p, seen, children, here);
	if (here->class <= COMPLETED)
		add(ctx, s, sum, here);
	*o = *here;
	if (o->class == COMPLETED)
		write_sum(ctx, s, sum, c);
	if (LOCKED)
		bpf_spin_unlock(&s->lock);
}

// is_ours reports whether a child addressed a packet to this aggregator. Children that moved to another one do not.
INLINE bool is_ours(const struct packet *p, const struct sender *who, const struct config *c)
{
	u32 own = c->addresses[who->worker & (MAX_CHILDREN - 1)];
	return !own || own == p->destination;
}

SEC("xdp")
int arrive(struct xdp_md *ctx)
{
	void *data = (void *)(u64)ctx->data, *end = (void *)(u64)ctx->data_end;
	struct config *c = bpf_map_lookup_elem(&config, &zero);
	if (!c)
		return XDP_DROP;
	struct bank *b = bank_of(c->bank);
	if (!b)
		return XDP_DROP;
	struct packet p;
	switch (read_packet(data, end, &p)) {
	case UPDATE:
		break;
	case MALFORMED:
		b->malformed++;
		return XDP_DROP;
	case CONTROL:
		b->control++;
		return XDP_PASS;
	default:
		b->bypassed++;
		return XDP_PASS;
	}
	struct sender *who = sender_of(p.source);
	if (!who || who->cluster != c->job || !is_ours(&p, who, c)) {
		b->bypassed++;
		return XDP_PASS;
	}
	if (!c->running) {
		b->lost_before_engine++;
		return XDP_DROP;
	}
	b->misidentified += p.job != who->cluster || p.child != who->worker;
	p.job = who->cluster;
	p.child = who->worker;

	struct outcome o;
	admit(ctx, &p, c, &o);
	if (o.class < CLASSES)
		(&b->consumed)[o.class]++;
	b->in_bytes += end - data;
	b->abandoned += o.abandoned;
	b->lane_saturations += o.saturated;
	if (LOGGED)
		tell_packet(&p, &o, b);
	if ((p.fragment & (GROUP - 1)) == GROUP - 1 || p.fragment == FRAGMENTS - 1) {
		struct check check = {p.child, p.epoch, p.fragment};
		b->unchecked += !!bpf_map_push_elem(&checks, &check, 0);
	}
	if (o.class != COMPLETED)
		return XDP_DROP;
	address(ctx, c);
	return bpf_redirect_map(&uplink, 0, XDP_TX);
}

const char LICENSE[] SEC("license") = "Apache-2.0";
