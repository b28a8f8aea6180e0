// fanout copies packets from the server to a group to every child of an aggregator, like a switch's multicast group. It runs in
// the receive path of the network stack, so that a batch of results that was sent as one piece stays one piece.
#include "kernel.h"
#include "wire.h"

const volatile u32 COPIES = 1;
const volatile u32 GROUP = 0; // IPv4 address in network byte order

enum { MAX_COPIES = 64 };

enum { TC_DROP = 2, TCX_NEXT = -1 };

static const u32 zero = 0;

// copy describes the destination of one copy.
struct copy {
	u32 interface;
	u32 address; // of a worker; 0 keeps the group's address, for an aggregator below
	u8 mac[8];   // followed by two bytes of padding
};

struct {
	UINT(type, MAP_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct copy);
	UINT(max_entries, 1); // COPIES
} copies SEC(".maps");

// counts are in frames. A piece that the sender's stack joined counts as the frames into which it is split.
struct counts {
	u64 frames;
	u64 copied;
	u64 refused; // copies that the kernel did not send
};

struct {
	UINT(type, MAP_PERCPU_ARRAY);
	TYPE(key, u32);
	TYPE(value, struct counts);
	UINT(max_entries, 1);
} counts SEC(".maps");

// address sets the destination. from is the current address.
INLINE void address(struct __sk_buff *skb, u32 from, u32 to, const u8 *mac)
{
	bpf_skb_store_bytes(skb, 0, mac, 6, 0);
	if (from == to)
		return;
	bpf_l4_csum_replace(skb, OFF_UDP_CHECKSUM, from, to, CSUM_PSEUDO_HEADER | CSUM_ZERO_IS_NONE | 4);
	bpf_l3_csum_replace(skb, OFF_IP_CHECKSUM, from, to, 4);
	bpf_skb_store_bytes(skb, OFF_SOURCE + 4, &to, 4, 0);
}

SEC("tc")
int fanout(struct __sk_buff *skb)
{
	void *data = (void *)(u64)skb->data, *end = (void *)(u64)skb->data_end;
	if (data + OFF_MAGIC > end || FIELD(data, OFF_ETHERTYPE, u16) != be16(0x0800) || FIELD(data, OFF_IP, u8) != 0x45 ||
	    FIELD(data, OFF_IP_PROTOCOL, u8) != 17 || FIELD(data, OFF_SOURCE + 4, u32) != GROUP)
		return TCX_NEXT;
	struct counts *n = bpf_map_lookup_elem(&counts, &zero);
	if (!n)
		return TC_DROP;
	u32 frames = skb->gso_segs ? skb->gso_segs : 1, at = GROUP;
	n->frames += frames;
	for (u32 i = 0; i < MAX_COPIES; i++) {
		u32 key = i;
		if (i >= COPIES)
			break;
		struct copy *c = bpf_map_lookup_elem(&copies, &key);
		if (!c)
			break;
		u32 to = c->address ? c->address : GROUP;
		address(skb, at, to, c->mac);
		at = to;
		*(bpf_clone_redirect(skb, c->interface, 0) ? &n->refused : &n->copied) += frames;
	}
	return TC_DROP;
}

const char LICENSE[] SEC("license") = "Apache-2.0";
