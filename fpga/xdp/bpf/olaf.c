// olaf queues at most one waiting update per cluster and merges arrivals into it.
#include "arrive.h"
#include "mark.h"
#include "serve.h"

// compare compares a reward with the mean of the waiting update, scaled by the count: 1 better, -1 worse, 0 neither.
INLINE int compare(const struct update *u, const struct place *w, s64 threshold)
{
	s64 n = w->count, d = (s64)u->reward * n - w->reward, limit = threshold * n;
	return d > limit ? 1 : d < -limit ? -1 : 0;
}

// newer reports whether a generation time is not before another one, modulo 2^48.
INLINE bool newer(u64 a, u64 w)
{
	return ((a - w) & ((1ull << 48) - 1)) < 1ull << 47;
}

// merge adds an update to the waiting update, which then has the header of the newest contributor.
INLINE void merge(struct queue *q, struct place *w, const struct update *u, struct outcome *o)
{
	s64 reward = (s64)w->reward + u->reward, clipped = reward;
	if (reward > 0x7fffffff)
		clipped = 0x7fffffff;
	if (reward < -0x80000000ll)
		clipped = -0x80000000ll;
	o->reward_saturated = clipped != reward;
	u32 count = w->count + u->count;
	u8 flags = w->flags | u->flags;
	if (count > 0xffff) {
		count = 0xffff;
		flags |= FLAG_COUNT_SATURATED;
		o->count_saturated = 1;
	}
	q->updates += count - w->count;
	u64 gen = newer(u->gen, w->gen) ? u->gen : w->gen;
	put(w, u);
	w->gen = gen;
	w->reward = clipped;
	w->count = count;
	w->flags = flags;
	w->owner = -1;
	o->merge = 1;
	o->class = AGGREGATED;
}

// meet combines an update with the waiting update of its cluster.
INLINE void meet(struct memory *m, struct place *w, u32 place, const struct update *u, struct outcome *o)
{
	if (w->lanes != u->lanes) {
		o->class = DROPPED_MISMATCH;
		return;
	}
	o->class = REPLACED;
	if (w->owner != u->worker) {
		int verdict = m->config->filter ? compare(u, w, m->config->threshold) : 0;
		if (verdict < 0) {
			o->class = DROPPED_REWARD;
			return;
		}
		if (!verdict) {
			o->place = place;
			merge(m->queue, w, u, o);
			return;
		}
		o->class = REPLACED_REWARD;
	}
	o->place = place;
	o->discarded = w->count;
	m->queue->updates += u->count - w->count;
	put(w, u);
}

INLINE bool merges(const struct cluster *c)
{
	return c->waiting;
}

INLINE void decide(struct memory *m, struct cluster *c, const struct update *u, u64 now, struct outcome *o)
{
	u32 i = c->waiting - 1;
	if (c->waiting) {
		if (i < SLOTS)
			meet(m, PLACE(m->slots, i), i, u, o);
		return;
	}
	o->collision = collides(m, c, u);
	append(m, c, u, now, o);
	i = o->place;
	if (i >= SLOTS)
		return;
	c->waiting = i + 1;
	put(PLACE(m->slots, i), u);
}

const char LICENSE[] SEC("license") = "Apache-2.0";
