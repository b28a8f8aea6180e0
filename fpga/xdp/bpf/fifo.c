// fifo appends updates while there is room, and drops them otherwise.
#include "arrive.h"
#include "mark.h"
#include "serve.h"

INLINE bool merges(const struct cluster *c)
{
	return 0;
}

INLINE void decide(struct memory *m, struct cluster *c, const struct update *u, u64 now, struct outcome *o)
{
	o->collision = collides(m, c, u);
	append(m, c, u, now, o);
	u32 i = o->place;
	if (i < SLOTS)
		put(PLACE(m->slots, i), u);
}

const char LICENSE[] SEC("license") = "Apache-2.0";
