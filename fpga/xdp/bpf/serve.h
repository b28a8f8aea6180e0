// The output side of the queue, for user space. Each program runs on a buffer with an exchange and room for a frame.
#pragma once
#include "queue.h"

enum { ASK_RELEASE = 1, ASK_START = 2, ASK_CLEAR = 4 };

// exchange is a request, which the program overwrites with its answer: the actions done, the frame, and the queue's state.
struct exchange {
	u32 ask;   // in
	u32 index; // in: index of the frame to view, in departure order
	u32 done;  // ASK bits that were carried out
	s32 slot;  // slot of the frame that starts or is viewed, or -1
	u64 at;	   // ns
	u64 gen;
	u64 appended; // ns
	u32 seq;
	s32 reward;
	u16 cluster;
	u16 worker;
	u16 count;
	u16 lanes;
	u32 flags;
	u32 waiting;
	s32 leaving;
	u32 active;
	u32 peak;
	u32 bank; // index of the bank in use from now on
	u64 updates;
	u64 occupancy; // ns times frames
	u64 number;    // number of the next decision
};

INLINE struct exchange *exchange_of(void *data, void *end)
{
	return data + sizeof(struct exchange) <= end ? data : NULL;
}

// answer writes the queue's state. The caller must have the lock.
INLINE void answer(struct exchange *x, struct queue *q, u64 now)
{
	x->at = now;
	x->waiting = q->waiting;
	x->leaving = q->leaving;
	x->active = q->active;
	x->peak = q->peak;
	x->bank = q->bank;
	x->updates = q->updates;
	x->occupancy = q->occupancy;
	x->number = q->number;
}

INLINE void view(struct exchange *x, const struct place *p, s32 slot)
{
	x->slot = slot;
	x->gen = p->gen;
	x->appended = p->appended;
	x->seq = p->seq;
	x->reward = p->reward;
	x->cluster = p->cluster;
	x->worker = p->worker;
	x->count = p->count;
	x->lanes = p->lanes;
	x->flags = p->flags;
}

// event is a decision of the output: a release, a start or a flush.
struct event {
	u64 number;
	s32 slot; // -1 if it did not happen
	u32 updates;
	u32 lanes;
	u32 cluster;
};

// note fills in an event, under the lock.
INLINE void note(struct event *e, const struct place *p, s32 slot, struct queue *q)
{
	e->number = q->number++;
	e->slot = slot;
	e->updates = p->count;
	e->lanes = p->lanes;
	e->cluster = p->cluster;
}

INLINE void tell_event(const struct event *e, u8 kind, u64 now, struct bank *b)
{
	struct record r = {
		.number = e->number,
		.at = now,
		.slot = e->slot,
		.count = e->updates,
		.lanes = e->lanes,
		.cluster = e->cluster,
		.kind = kind,
	};
	tell(&r, b);
}

// release takes the frame on the wire out of the queue.
INLINE void release(struct memory *m, struct event *e, u64 now)
{
	struct queue *q = m->queue;
	s32 i = q->leaving;
	if (i < 0 || i >= SLOTS)
		return;
	struct place *p = PLACE(m->slots, i);
	note(e, p, i, q);
	q->updates -= p->count;
	q->leaving = -1;
	if (e->cluster >= CLUSTERS)
		return;
	struct cluster *c = m->clusters + e->cluster;
	enter(c, q);
	if (!--c->inside)
		q->active--;
	c->delivered_frames++;
	c->delivered_updates += e->updates;
	c->last_departure = now;
}

// start locks the head.
INLINE void start(struct memory *m, struct event *e)
{
	struct queue *q = m->queue;
	u32 i = q->head;
	if (!q->waiting || q->leaving >= 0 || i >= SLOTS)
		return;
	struct place *p = PLACE(m->slots, i);
	note(e, p, i, q);
	q->leaving = i;
	q->head = i + 1 == m->config->ring ? 0 : i + 1;
	q->waiting--;
	if (e->cluster < CLUSTERS)
		m->clusters[e->cluster].waiting = 0;
}

// write_frame writes the leaving frame from a place, which does not change any more.
INLINE void write_frame(struct xdp_md *ctx, struct place *p, void *frame, void *end)
{
	if (frame + HEADER_BYTES > end)
		return;
#pragma unroll
	for (int i = 0; i < HEADER_BYTES / 8; i++)
		FIELD(frame, 8 * i, u64) = p->header[i];
	FIELD(frame, OFF_UDP_CHECKSUM, u16) = 0;
	FIELD(frame, OFF_BITS, u8) = 1 << 6 | KIND_UPDATE << 4 | (p->flags & FLAG_RETRANSMISSION) << 1 | (p->count > 1);
	FIELD(frame, OFF_CLUSTER, u16) = be16(p->cluster);
	FIELD(frame, OFF_WORKER, u16) = be16(p->worker);
	FIELD(frame, OFF_COUNT, u16) = be16(p->count);
	FIELD(frame, OFF_GEN, u16) = be16((u16)(p->gen >> 32));
	FIELD(frame, OFF_GEN + 2, u32) = be32((u32)p->gen);
	FIELD(frame, OFF_REWARD, u32) = be32(p->reward);
	send_lanes(ctx, sizeof(struct exchange) + HEADER_BYTES, LANES_OF(p), &p->lanes, LANES);
}

// turn releases the frame on the wire, then starts the next one and copies it behind the exchange, as asked.
SEC("xdp")
int turn(struct xdp_md *ctx)
{
	void *data = (void *)(u64)ctx->data, *end = (void *)(u64)ctx->data_end;
	struct exchange *x = exchange_of(data, end);
	struct memory m;
	if (!x || !open_memory(&m))
		return XDP_DROP;
	struct queue *q = m.queue;
	struct event released = {.slot = -1}, started = {.slot = -1};
	u32 ask = x->ask;
	u64 now = bpf_ktime_get_ns();

	bpf_spin_lock(&q->lock);
	u32 bank = q->bank;
	settle(q, now);
	if (ask & ASK_RELEASE)
		release(&m, &released, now);
	if (ask & ASK_START)
		start(&m, &started);
	answer(x, q, now);
	bpf_spin_unlock(&q->lock);

	struct bank *b = bank_of(bank);
	if (!b)
		return XDP_DROP;
	x->done = (released.slot >= 0 ? ASK_RELEASE : 0) | (started.slot >= 0 ? ASK_START : 0);
	x->slot = -1;
	if (released.slot >= 0) {
		tell_event(&released, RELEASE, now, b);
		b->delivered_frames += 1;
		b->delivered_bytes += HEADER_BYTES + LANE_BYTES * released.lanes;
		b->delivered_updates += released.updates;
	}
	if (started.slot >= 0 && started.slot < SLOTS) {
		tell_event(&started, START, now, b);
		b->started_frames += 1;
		struct place *p = PLACE(m.slots, started.slot);
		view(x, p, started.slot);
		write_frame(ctx, p, x + 1, end);
	}
	return XDP_PASS;
}

// flush discards all frames in the queue.
SEC("xdp")
int flush(struct xdp_md *ctx)
{
	void *data = (void *)(u64)ctx->data, *end = (void *)(u64)ctx->data_end;
	struct exchange *x = exchange_of(data, end);
	struct queue *q = bpf_map_lookup_elem(&queue, &zero);
	if (!x || !q)
		return XDP_DROP;
	struct event e = {.slot = -1};
	u64 now = bpf_ktime_get_ns();

	bpf_spin_lock(&q->lock);
	u32 bank = q->bank;
	settle(q, now);
	e.number = q->number++;
	u64 updates = q->updates;
	u32 frames = q->waiting + (q->leaving >= 0);
	q->era++;
	q->head = q->waiting = q->active = 0;
	q->updates = 0;
	q->leaving = -1;
	answer(x, q, now);
	bpf_spin_unlock(&q->lock);

	struct bank *b = bank_of(bank);
	if (!b)
		return XDP_DROP;
	tell_event(&e, FLUSH, now, b);
	b->flushed_frames += frames;
	b->flushed_updates += updates;
	return XDP_PASS;
}

// latch switches to the other bank, and on request resets the peak, the occupancy and the clusters' counters.
SEC("xdp")
int latch(struct xdp_md *ctx)
{
	void *data = (void *)(u64)ctx->data, *end = (void *)(u64)ctx->data_end;
	struct exchange *x = exchange_of(data, end);
	struct queue *q = bpf_map_lookup_elem(&queue, &zero);
	struct config *c = bpf_map_lookup_elem(&config, &zero);
	if (!x || !q || !c)
		return XDP_DROP;
	u64 now = bpf_ktime_get_ns();
	u32 holds = c->holds, clear = x->ask & ASK_CLEAR;

	bpf_spin_lock(&q->lock);
	settle(q, now);
	q->bank ^= 1;
	answer(x, q, now);
	if (clear) {
		q->peak = q->waiting + (q->leaving >= 0 ? holds : 0);
		q->occupancy = 0;
		q->epoch++;
	}
	bpf_spin_unlock(&q->lock);
	return XDP_PASS;
}

// inspect views a frame by its place in the departure order, the one on the wire first.
SEC("xdp")
int inspect(struct xdp_md *ctx)
{
	void *data = (void *)(u64)ctx->data, *end = (void *)(u64)ctx->data_end;
	struct exchange *x = exchange_of(data, end);
	struct memory m;
	if (!x || !open_memory(&m))
		return XDP_DROP;
	struct queue *q = m.queue;
	u32 index = x->index, ring = m.config->ring;
	u64 now = bpf_ktime_get_ns();
	x->slot = -1;

	bpf_spin_lock(&q->lock);
	settle(q, now);
	answer(x, q, now);
	u32 leaving = q->leaving >= 0, at = NEVER;
	if (leaving && !index) {
		at = q->leaving;
	} else if (index - leaving < q->waiting) {
		at = q->head + index - leaving;
		if (at >= ring)
			at -= ring;
	}
	if (at < SLOTS) {
		struct place *p = PLACE(m.slots, at);
		view(x, p, at);
		write_frame(ctx, p, x + 1, end);
	}
	bpf_spin_unlock(&q->lock);
	return XDP_PASS;
}
