// Processes an arriving frame: checks it, identifies it by the tables, lets the discipline decide, counts and logs.
#pragma once
#include "queue.h"

// decide implements the discipline. It runs under the queue's lock and writes all but header and lanes. o is the queue's outcome.
INLINE void decide(struct memory *m, struct cluster *c, const struct update *u, u64 now, struct outcome *o);

// merges reports whether an update of the cluster will meet a waiting one; without the lock, it is a guess.
INLINE bool merges(const struct cluster *c);

// append puts an update behind the last waiting one, if a slot is free.
INLINE void append(struct memory *m, struct cluster *c, const struct update *u, u64 now, struct outcome *o)
{
	struct queue *q = m->queue;
	u32 occupied = q->waiting + (q->leaving >= 0 ? m->config->holds : 0);
	if (occupied >= m->config->depth) {
		o->class = DROPPED_FULL;
		return;
	}
	u32 i = q->head + q->waiting;
	if (i >= m->config->ring)
		i -= m->config->ring;
	settle(q, now);
	o->class = APPENDED;
	o->place = i;
	q->waiting++;
	q->updates += u->count;
	if (occupied >= q->peak)
		q->peak = occupied + 1;
	if (!c->inside++)
		q->active++;
	if (i >= SLOTS)
		return;
	PLACE(m->slots, i)->appended = now;
}

// collides reports whether the cluster's only frame in the queue is the one on the wire.
INLINE bool collides(struct memory *m, struct cluster *c, const struct update *u)
{
	s32 leaving = m->queue->leaving;
	if (leaving < 0 || leaving >= SLOTS || c->inside != 1)
		return 0;
	return PLACE(m->slots, leaving)->cluster == u->cluster;
}

// put writes an update into a place and replaces its content.
INLINE void put(struct place *p, const struct update *u)
{
	p->gen = u->gen;
	p->seq = u->seq;
	p->reward = u->reward;
	p->owner = u->worker;
	p->cluster = u->cluster;
	p->worker = u->worker;
	p->count = u->count;
	p->lanes = u->lanes;
	p->flags = u->flags;
}

// keep copies the newest contributor's header.
INLINE void keep(struct place *p, void *data)
{
#pragma unroll
	for (int i = 0; i < HEADER_BYTES / 8; i++)
		p->header[i] = FIELD(data, 8 * i, u64);
}

INLINE void tell_arrival(const struct update *u, const struct outcome *o, u64 number, u64 now, struct bank *b)
{
	struct record r = {
		.number = number,
		.at = now,
		.gen = u->gen,
		.seq = u->seq,
		.reward = u->reward,
		.slot = o->place,
		.saturated = o->saturated,
		.cluster = u->cluster,
		.worker = u->worker,
		.count = u->count,
		.lanes = u->lanes,
		.kind = ARRIVAL,
		.class = o->class,
		.flags = u->flags,
	};
	tell(&r, b);
}

// place_update copies header and lanes to the update's place.
INLINE void place_update(struct memory *m, struct xdp_md *ctx, void *data, struct outcome *o)
{
	u32 i = o->place;
	if (i >= SLOTS)
		return;
	struct place *p = PLACE(m->slots, i);
	keep(p, data);
	if (o->merge)
		o->saturated = add_lanes(ctx, HEADER_BYTES, LANES_OF(p), &p->lanes, LANES);
	else
		store_lanes(ctx, HEADER_BYTES, LANES_OF(p), &p->lanes, LANES);
}

// admit passes an identified update to the discipline.
INLINE void admit(struct memory *m, struct xdp_md *ctx, void *data, const struct update *u, bool lies)
{
	struct queue *q = m->queue;
	struct outcome o;
	struct cluster *c = m->clusters + u->cluster;
	// Reading the clock is the most expensive step, so a merge that is not logged skips it.
	u64 now = LOGGED || !merges(c) ? bpf_ktime_get_ns() : 0;

	bpf_spin_lock(&q->lock);
	enter(c, q);
	if (!now && !merges(c)) { // the waiting update has left meanwhile
		bpf_spin_unlock(&q->lock);
		now = bpf_ktime_get_ns();
		bpf_spin_lock(&q->lock);
		enter(c, q);
	}
	u64 number = q->number++;
	u32 bank = q->bank;
	q->outcome = (struct outcome){.class = DROPPED_FULL, .place = NEVER};
	decide(m, c, u, now, &q->outcome);
	place_update(m, ctx, data, &q->outcome);
	o = q->outcome;
	if (o.class < CLASSES)
		c->class[o.class]++;
	bpf_spin_unlock(&q->lock);

	struct bank *b = bank_of(bank);
	if (!b)
		return;
	if (o.class < CLASSES)
		(&b->appended)[o.class]++;
	b->misidentified += lies;
	b->in_bytes += HEADER_BYTES + LANE_BYTES * u->lanes;
	b->lane_saturations += o.saturated;
	b->locked_collisions += o.collision;
	b->discarded_updates += o.discarded;
	b->reward_saturations += o.reward_saturated;
	b->count_saturations += o.count_saturated;
	if (o.place != NEVER)
		b->accepted_updates += u->count;
	if (LOGGED)
		tell_arrival(u, &o, number, now, b);
}

// fate is the outcome for a frame before the queue.
enum fate { ADMITTED, FATE_BYPASSED, FATE_FOREIGN, FATE_MALFORMED, BEYOND, LOST };

// judge returns a frame's fate before the queue, and identifies an update that is admitted.
INLINE enum fate judge(struct memory *m, struct xdp_md *ctx, void *data, void *end, struct update *u, bool *lies)
{
	u32 bytes = FRAME_LANES > PIECE_LANES ? bpf_xdp_get_buff_len(ctx) : end - data;
	enum verdict v = read_update(data, end, bytes, FRAME_LANES, u);
	if (v == MALFORMED)
		return FATE_MALFORMED;
	if (v == BYPASSED)
		return FATE_FOREIGN;
	if (v != UPDATE)
		return FATE_BYPASSED;
	struct sender *s = sender_of(u->source);
	if (!s)
		return FATE_BYPASSED;
	if (s->cluster >= CLUSTERS)
		return BEYOND;
	if (!m->config->running)
		return LOST;
	u32 kept = u->lanes < LANES ? u->lanes : LANES;
	if (data + HEADER_BYTES + kept * LANE_BYTES > end)
		return FATE_MALFORMED; // its lanes are not contiguous
	*lies = u->cluster != s->cluster || u->worker != s->worker;
	u->cluster = s->cluster;
	u->worker = s->worker;
	return ADMITTED;
}

// turn_away counts a frame that does not reach the queue, and returns its verdict.
INLINE int turn_away(enum fate f, struct bank *b)
{
	if (!b)
		return XDP_DROP;
	bool passes = f == FATE_BYPASSED || f == FATE_FOREIGN || f == BEYOND;
	b->bypassed += passes;
	b->foreign += f == FATE_FOREIGN;
	b->beyond_clusters += f == BEYOND;
	b->malformed += f == FATE_MALFORMED;
	b->lost_before_engine += f == LOST;
	return passes ? XDP_PASS : XDP_DROP;
}

SEC("xdp.frags")
int arrive(struct xdp_md *ctx)
{
	void *data = (void *)(u64)ctx->data, *end = (void *)(u64)ctx->data_end;
	struct memory m;
	struct update u;
	bool lies;
	if (!open_memory(&m))
		return XDP_DROP;
	enum fate f = judge(&m, ctx, data, end, &u, &lies);
	if (f != ADMITTED)
		return turn_away(f, bank_of(m.queue->bank));
	if (u.cluster < CLUSTERS)
		admit(&m, ctx, data, &u, lies);
	return XDP_DROP;
}
