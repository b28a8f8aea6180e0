// Gradient lanes. In a frame they are big-endian, one after the other; in a slot two stand in one word, the first in its upper
// half, which a word of the frame becomes by one swap of its bytes.
#pragma once
#include "kernel.h"
#include "wire.h"

// WORDS_AT_ONCE are copied or added between two looks at the end of the frame. LANE_WORDS is what n lanes take in a slot: whole
// such blocks, and never none behind the last whole one.
#define WORDS_AT_ONCE 8
#define LANE_WORDS(n) (((n) / 2 | (WORDS_AT_ONCE - 1)) + 1)

// SIGNS are the sign bits of a pair.
#define SIGNS 0x8000000080000000ull

// add_pair adds each lane for itself, wrapping: what the lower one carries is taken out of the upper one again.
INLINE u64 add_pair(u64 a, u64 b)
{
	u64 sum = a + b;
	return sum - ((a ^ b ^ sum) & 1ull << 32);
}

INLINE u64 subtract_pair(u64 a, u64 b)
{
	u64 rest = a - b;
	return rest + ((a ^ b ^ rest) & 1ull << 32);
}

// wrapped has the sign bit of every lane whose sum wrapped, where it differs from both addends, and nonsense in other bits.
INLINE u64 wrapped(u64 a, u64 b, u64 sum)
{
	return (a ^ sum) & (b ^ sum);
}

// saturate puts the limit into every lane that wrapped. There is no branch: one that depends on data would double the paths
// that the verifier follows.
INLINE u64 saturate(u64 a, u64 b, u64 sum, u32 *saturated)
{
	u64 over = wrapped(a, b, sum) & SIGNS;
	u64 mask = (over >> 31) * 0xffffffff;	      // all ones in lanes that wrapped
	u64 limit = ~SIGNS + ((a & SIGNS) >> 31);     // the greatest number, or the least where a is negative
	*saturated += (over >> 63) + (over >> 31 & 1);
	return (sum & ~mask) | (limit & mask);
}

// A step does something with words of a slot and as many of a frame, and says how many lanes saturated.
typedef u32 step(u64 *slot, u64 *frame);

INLINE u32 store_one(u64 *slot, u64 *frame)
{
	*slot = be64(*frame);
	return 0;
}

INLINE u32 store_many(u64 *slot, u64 *frame)
{
#pragma unroll
	for (int k = 0; k < WORDS_AT_ONCE; k++)
		store_one(slot + k, frame + k);
	return 0;
}

INLINE u32 wrap_one(u64 *slot, u64 *frame)
{
	*slot = add_pair(*slot, be64(*frame));
	return 0;
}

INLINE u32 wrap_many(u64 *slot, u64 *frame)
{
#pragma unroll
	for (int k = 0; k < WORDS_AT_ONCE; k++)
		wrap_one(slot + k, frame + k);
	return 0;
}

INLINE u32 add_one(u64 *slot, u64 *frame)
{
	u32 saturated = 0;
	u64 word = be64(*frame), sum = add_pair(*slot, word);
	*slot = saturate(*slot, word, sum, &saturated);
	return saturated;
}

// add_many adds without looking. Where any lane wrapped, which is rare, it takes the sums back and adds again with care.
INLINE u32 add_many(u64 *slot, u64 *frame)
{
	u64 over = 0;
#pragma unroll
	for (int k = 0; k < WORDS_AT_ONCE; k++) {
		u64 word = be64(frame[k]), sum = add_pair(slot[k], word);
		over |= wrapped(slot[k], word, sum);
		slot[k] = sum;
	}
	if (!(over & SIGNS))
		return 0;
	u32 saturated = 0;
#pragma unroll
	for (int k = 0; k < WORDS_AT_ONCE; k++) {
		u64 word = be64(frame[k]), sum = slot[k];
		slot[k] = saturate(subtract_pair(sum, word), word, sum, &saturated);
	}
	return saturated;
}

INLINE u32 send_one(u64 *slot, u64 *frame)
{
	*frame = be64(*slot);
	return 0;
}

INLINE u32 send_many(u64 *slot, u64 *frame)
{
#pragma unroll
	for (int k = 0; k < WORDS_AT_ONCE; k++)
		send_one(slot + k, frame + k);
	return 0;
}

// half takes a step with the last lane of an odd number, which is half a word, its first bytes.
INLINE u32 half(u64 *slot, u64 *frame, step *const one)
{
	u64 word = *(u32 *)frame;
	u32 saturated = one(slot, &word);
	*(u32 *)frame = word;
	return saturated;
}

// lanes_of is how many lanes a slot holds, as it says itself, up to max.
INLINE u32 lanes_of(const u16 *lanes, u32 max)
{
	u32 n = *(volatile const u16 *)lanes;
	return n < max ? n : max;
}

// each_word walks over the lanes of a slot, which has room for max, and of a frame, where they begin offset bytes from the start,
// and returns how many saturated.
//
// The verifier follows every number of blocks that a frame may have. Were what it knows of that number, and of how much of the
// frame was looked at, still known behind the loop, it would follow the rest of the program as often. So both are read again.
INLINE u32 each_word(struct xdp_md *ctx, u32 offset, u64 *slot, const u16 *lanes, u32 max, step *const many, step *const one)
{
	u32 left = lanes_of(lanes, max) / 2, saturated = 0;
	u64 *frame = (void *)(u64)ctx->data + offset, *dst = slot;
	void *end = (void *)(u64)ctx->data_end;
	for (u32 room = max / 2; room >= WORDS_AT_ONCE; room -= WORDS_AT_ONCE) {
		if (left < WORDS_AT_ONCE || (void *)(frame + WORDS_AT_ONCE) > end)
			break;
		saturated += many(dst, frame);
		dst += WORDS_AT_ONCE;
		frame += WORDS_AT_ONCE;
		left -= WORDS_AT_ONCE;
	}
	u32 n = lanes_of(lanes, max), words = n / 2, at = words & ~(WORDS_AT_ONCE - 1);
	frame = (void *)(u64)ctx->data + offset;
	end = (void *)(u64)ctx->data_end;
	frame += at;
	dst = slot + at;
#pragma clang loop unroll(disable)
	for (int k = 0; k < WORDS_AT_ONCE - 1; k++, dst++, frame++, at++) {
		if (at >= words || (void *)(frame + 1) > end)
			break;
		saturated += one(dst, frame);
	}
	if (n & 1 && (void *)frame + LANE_BYTES <= end)
		saturated += half(dst, frame, one);
	return saturated;
}

// store_lanes copies a frame's lanes into a slot.
INLINE void store_lanes(struct xdp_md *ctx, u32 offset, u64 *slot, const u16 *lanes, u32 max)
{
	each_word(ctx, offset, slot, lanes, max, store_many, store_one);
}

// add_lanes_wrapping adds a frame's lanes to a slot's modulo 2^32.
INLINE void add_lanes_wrapping(struct xdp_md *ctx, u32 offset, u64 *slot, const u16 *lanes, u32 max)
{
	each_word(ctx, offset, slot, lanes, max, wrap_many, wrap_one);
}

// add_lanes adds a frame's lanes to a slot's, saturating, and returns how many saturated.
INLINE u32 add_lanes(struct xdp_md *ctx, u32 offset, u64 *slot, const u16 *lanes, u32 max)
{
	return each_word(ctx, offset, slot, lanes, max, add_many, add_one);
}

// send_lanes copies a slot's lanes into a frame.
INLINE void send_lanes(struct xdp_md *ctx, u32 offset, u64 *slot, const u16 *lanes, u32 max)
{
	each_word(ctx, offset, slot, lanes, max, send_many, send_one);
}
