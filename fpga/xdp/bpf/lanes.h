// Gradient lanes. In a frame they are big-endian, one after the other. In a slot, each word contains two lanes, the first in its
// upper half, so that swapping the bytes of a frame's word gives the slot's word.
#pragma once
#include "kernel.h"
#include "wire.h"

// WORDS_AT_ONCE words are copied or added between two checks for the end of the frame. LANE_WORDS is the number of words for n
// lanes in a slot: whole blocks of that size, and more than n / 2 words.
#define WORDS_AT_ONCE 8
#define LANE_WORDS(n) (((n) / 2 | (WORDS_AT_ONCE - 1)) + 1)

// SIGNS are the sign bits of a pair.
#define SIGNS 0x8000000080000000ull

// add_pair adds each lane separately, wrapping: the carry of the lower lane is removed from the upper one.
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

// wrapped returns the sign bit of every lane whose sum wrapped (it differs from both addends); other bits are undefined.
INLINE u64 wrapped(u64 a, u64 b, u64 sum)
{
	return (a ^ sum) & (b ^ sum);
}

// saturate sets every lane that wrapped to its limit. It has no branch, because a branch on data would double the paths that
// the verifier follows.
INLINE u64 saturate(u64 a, u64 b, u64 sum, u32 *saturated)
{
	u64 over = wrapped(a, b, sum) & SIGNS;
	u64 mask = (over >> 31) * 0xffffffff;	      // all ones in lanes that wrapped
	u64 limit = ~SIGNS + ((a & SIGNS) >> 31);     // the greatest number, or the least where a is negative
	*saturated += (over >> 63) + (over >> 31 & 1);
	return (sum & ~mask) | (limit & mask);
}

// A step processes words of a slot and as many of a frame, and returns the number of lanes that saturated.
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

// add_many adds without checks. If any lane wrapped, which is rare, it undoes the additions and adds again, saturating.
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

// half runs a step on the last lane of an odd number of lanes, which is the first half of a word.
INLINE u32 half(u64 *slot, u64 *frame, step *const one)
{
	u64 word = *(u32 *)frame;
	u32 saturated = one(slot, &word);
	*(u32 *)frame = word;
	return saturated;
}

// lanes_of returns the number of lanes in a slot, as stored there, up to max.
INLINE u32 lanes_of(const u16 *lanes, u32 max)
{
	u32 n = *(volatile const u16 *)lanes;
	return n < max ? n : max;
}

// each_word runs a step on all lanes of a slot, which has room for max, and of a frame, where they begin at offset. It returns
// the number of lanes that saturated.
//
// The verifier follows every number of blocks that a frame may have. If it still knew that number, and the checked length of the
// frame, after the loop, it would follow the rest of the program for each of them. So both are read again.
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

// add_lanes adds a frame's lanes to a slot's, saturating, and returns the number that saturated.
INLINE u32 add_lanes(struct xdp_md *ctx, u32 offset, u64 *slot, const u16 *lanes, u32 max)
{
	return each_word(ctx, offset, slot, lanes, max, add_many, add_one);
}

// send_lanes copies a slot's lanes into a frame.
INLINE void send_lanes(struct xdp_md *ctx, u32 offset, u64 *slot, const u16 *lanes, u32 max)
{
	each_word(ctx, offset, slot, lanes, max, send_many, send_one);
}
