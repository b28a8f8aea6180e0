// The frame of docs/reference/semantics.md, Update on the wire, checked with the same rules as in package olaf.
#pragma once
#include "kernel.h"

enum {
	ETHERNET_BYTES = 14,
	IP_BYTES = 20,
	UDP_BYTES = 8,
	HEADER_BYTES = 64, // bytes before the lanes
	STATUS_BYTES = 8,  // between header and lanes of an ACK
	LANE_BYTES = 4,
	MAX_LANES = 2243,
	PIECE_LANES = 704, // frames with up to this many lanes are always contiguous

	OFF_ETHERTYPE = 12,
	OFF_IP = 14,
	OFF_IP_LENGTH = 16,
	OFF_IP_FRAGMENT = 20,
	OFF_IP_PROTOCOL = 23,
	OFF_IP_CHECKSUM = 24,
	OFF_SOURCE = 26,
	OFF_UDP = 34,
	OFF_PORT = 36,
	OFF_UDP_LENGTH = 38,
	OFF_UDP_CHECKSUM = 40,
	OFF_MAGIC = 42,
	OFF_BITS = 43,
	OFF_CLUSTER = 44,
	OFF_WORKER = 46,
	OFF_SEQ = 48,
	OFF_COUNT = 52,
	OFF_GEN = 54,
	OFF_REWARD = 60,

	UDP_PORT = 20300,
	OLAF_MAGIC = 0x4f,
	XAGG_MAGIC = 0x58,
	KIND_UPDATE = 1,
	KIND_ACK = 2,

	FLAG_RETRANSMISSION = 1,
	FLAG_COUNT_SATURATED = 2,
};

enum verdict { UPDATE, ACK, BYPASSED, MALFORMED };

// update is the header in the host's byte order.
struct update {
	u64 gen;
	u32 seq;
	s32 reward;
	u32 source; // IPv4 address in network byte order
	u16 cluster;
	u16 worker;
	u16 count;
	u16 lanes;
	u8 flags;
};

INLINE u16 fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

// claims reports whether a frame claims to be of the protocol with the given magic number.
INLINE bool claims(void *data, void *end, u8 magic)
{
	return data + OFF_MAGIC + 1 <= end && FIELD(data, OFF_ETHERTYPE, u16) == be16(0x0800) &&
	       FIELD(data, OFF_IP, u8) == 0x45 && FIELD(data, OFF_IP_PROTOCOL, u8) == 17 &&
	       !(FIELD(data, OFF_IP_FRAGMENT, u16) & be16(0x1fff)) &&
	       FIELD(data, OFF_PORT, u16) == be16(UDP_PORT) && FIELD(data, OFF_MAGIC, u8) == magic;
}

// udp_checksum_fits verifies the UDP checksum. It returns 0 if the frame is not completely accessible.
INLINE bool udp_checksum_fits(void *data, void *end, u32 udp_bytes, u32 max_words)
{
	u64 sum = be16(17) + be16(udp_bytes);
	sum += FIELD(data, OFF_SOURCE, u32);
	sum += FIELD(data, OFF_SOURCE + 4, u32);
	for (int i = OFF_UDP; i < HEADER_BYTES; i += 2)
		sum += FIELD(data, i, u16);
	u32 *word = data + HEADER_BYTES;
	u32 words = (udp_bytes + OFF_UDP - HEADER_BYTES) / 4;
	u32 i = 0;
	for (; i < max_words; i++, word++) {
		if (i >= words || (void *)(word + 1) > end)
			break;
		sum += *word;
	}
	return i == words && fold(sum) == 0xffff;
}

// outer_fits checks the headers around the protocol's header. frame is the length on the wire.
INLINE bool outer_fits(void *data, void *end, u32 frame, u32 max_words)
{
	u32 ip = be16(FIELD(data, OFF_IP_LENGTH, u16)), udp = be16(FIELD(data, OFF_UDP_LENGTH, u16));
	if (ip < HEADER_BYTES - ETHERNET_BYTES || frame != ETHERNET_BYTES + ip || udp != ip - IP_BYTES)
		return 0;
	u64 sum = 0;
	for (int i = OFF_IP; i < OFF_UDP; i += 4)
		sum += FIELD(data, i, u32);
	if (fold(sum) != 0xffff || FIELD(data, OFF_IP_FRAGMENT, u16) & be16(0x2000))
		return 0;
	return !FIELD(data, OFF_UDP_CHECKSUM, u16) || udp_checksum_fits(data, end, udp, max_words);
}

// read_update checks a frame and reads its header. max_lanes is the maximum number of lanes in this build.
INLINE enum verdict read_update(void *data, void *end, u32 frame, u32 max_lanes, struct update *u)
{
	if (!claims(data, end, OLAF_MAGIC))
		return BYPASSED;
	if (data + HEADER_BYTES > end || !outer_fits(data, end, frame, max_lanes + STATUS_BYTES / 4))
		return MALFORMED;

	u8 bits = FIELD(data, OFF_BITS, u8), kind = bits >> 4 & 3;
	u32 payload = frame - HEADER_BYTES;
	u->count = be16(FIELD(data, OFF_COUNT, u16));
	if (kind == KIND_ACK && (payload < STATUS_BYTES || data + HEADER_BYTES + STATUS_BYTES > end))
		return MALFORMED;
	if (bits >> 6 != 1 || bits & 0x0c || (bits & 1) != (u->count > 1) || payload % LANE_BYTES ||
	    payload > MAX_LANES * LANE_BYTES)
		return MALFORMED;
	if (kind == KIND_ACK)
		return ACK;
	if (kind != KIND_UPDATE || !u->count || payload > max_lanes * LANE_BYTES)
		return MALFORMED;

	u->gen = (u64)be16(FIELD(data, OFF_GEN, u16)) << 32 | be32(FIELD(data, OFF_GEN + 2, u32));
	u->seq = be32(FIELD(data, OFF_SEQ, u32));
	u->reward = be32(FIELD(data, OFF_REWARD, u32));
	u->source = FIELD(data, OFF_SOURCE, u32);
	u->cluster = be16(FIELD(data, OFF_CLUSTER, u16));
	u->worker = be16(FIELD(data, OFF_WORKER, u16));
	u->lanes = payload / LANE_BYTES;
	u->flags = bits & 2 ? FLAG_RETRANSMISSION : 0;
	return UPDATE;
}
