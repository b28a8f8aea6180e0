// The part of the kernel's interface (uapi/linux/bpf.h) that the programs use: types, and numbers of maps, helpers and verdicts.
// It is copied so that objects do not depend on the headers of the machine that builds them.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static __attribute__((always_inline)) inline
#define NULL ((void *)0)

// The fields of a map's definition, as loaders read them from BTF.
#define UINT(name, value) int(*name)[value]
#define TYPE(name, type) typeof(type) *name

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

struct __sk_buff {
	u32 before[19]; // fields that no program uses
	u32 data;
	u32 data_end;
	u32 between[15];
	u64 flow_keys;
	u64 tstamp;
	u32 wire_len;
	u32 gso_segs;
};

struct bpf_spin_lock {
	u32 val;
};

enum { XDP_DROP = 1, XDP_PASS = 2, XDP_TX = 3 };

enum {
	MAP_ARRAY = 2,
	MAP_PERCPU_ARRAY = 6,
	MAP_ARRAY_OF_MAPS = 12,
	MAP_DEVMAP = 14,
	MAP_QUEUE = 22,
	MAP_RINGBUF = 27,
	MAP_MMAPABLE = 1 << 10,
	RINGBUF_NO_WAKEUP = 1,
	CSUM_PSEUDO_HEADER = 1 << 4,
	CSUM_ZERO_IS_NONE = 1 << 5,
};

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_skb_store_bytes)(struct __sk_buff *skb, u32 at, const void *from, u32 bytes, u64 flags) = (void *)9;
static long (*const bpf_l3_csum_replace)(struct __sk_buff *skb, u32 at, u64 from, u64 to, u64 flags) = (void *)10;
static long (*const bpf_l4_csum_replace)(struct __sk_buff *skb, u32 at, u64 from, u64 to, u64 flags) = (void *)11;
static long (*const bpf_clone_redirect)(struct __sk_buff *skb, u32 interface, u64 flags) = (void *)13;
static long (*const bpf_redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*const bpf_map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
static long (*const bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*const bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*const bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static long (*const bpf_loop)(u32 n, long (*body)(u32, void *), void *context, u64 flags) = (void *)181;
static u64 (*const bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188;

#define be16(v) __builtin_bswap16(v)
#define be32(v) __builtin_bswap32(v)
#define be64(v) __builtin_bswap64(v)

// A field of a packet or a record, at a fixed offset. A packed struct would be read byte by byte.
#define FIELD(at, offset, type) (*(type *)((u8 *)(at) + (offset)))
