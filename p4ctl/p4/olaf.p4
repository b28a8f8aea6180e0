// Headers, side band, parser and deparser that both VNP4 blocks share.
#ifndef OLAF_P4
#define OLAF_P4

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  PROTOCOL_UDP   = 17;
const bit<16> OLAF_PORT      = 20300;
const bit<8>  OLAF_MAGIC     = 0x4F;
const bit<2>  OLAF_VERSION   = 1;
const bit<2>  TYPE_UPDATE    = 1;
const bit<2>  TYPE_ACK       = 2;

// What VNP4_1 found out about a packet; OlafQueue lets only UPDATE into its slots.
const bit<2> CLASS_BYPASS = 0;
const bit<2> CLASS_UPDATE = 1;
const bit<2> CLASS_ACK    = 2;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> identification;
    bit<16> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

header olaf_t {
    bit<8>  magic;
    bit<2>  version;
    bit<2>  type;
    bit<2>  reserved;
    bit<1>  retransmission;
    bit<1>  aggregated;
    bit<16> cluster_id;
    bit<16> worker_id;
    bit<32> sequence;
    bit<16> count;
    bit<48> generation_ns;
    bit<32> reward;
}

// Only an ACK carries it, between its header and its lanes; the server sends it zeroed, so no length ever changes.
header queue_status_t {
    bit<24> occupancy;
    bit<16> active_clusters;
    bit<16> slots;
    bit<1>  full; // no slot is free
    bit<7>  zero;
}

struct headers_t {
    ethernet_t     ethernet;
    ipv4_t         ipv4;
    udp_t          udp;
    olaf_t         olaf;
    queue_status_t status;
}

// The side band of the stream. VNP4 turns the field named axis_tuser into the port of that name: VNP4_1 drives the
// upper part, OlafQueue the three numbers of the queue, VNP4_2 the group for the replication block behind it.
struct sideband_t {
    bit<2>  class;
    bit<1>  misidentified;
    bit<1>  multicast;
    bit<16> cluster_id;
    bit<16> worker_id;
    bit<32> group_id;
    bit<24> occupancy;
    bit<16> active_clusters;
    bit<16> slots;
}

struct metadata_t {
    sideband_t axis_tuser;
    bit<32>    worker_address;
    bit<1>     known_worker;
    bit<1>     from_server;
}

parser OlafParser(packet_in packet,
                  out headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.protocol) {
            (4, 5, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            OLAF_PORT: parse_olaf;
            default: accept;
        }
    }
    state parse_olaf {
        packet.extract(hdr.olaf);
        transition select(hdr.olaf.magic, hdr.olaf.version, hdr.olaf.type) {
            (OLAF_MAGIC, OLAF_VERSION, TYPE_ACK): parse_status;
            default: accept;
        }
    }
    state parse_status {
        packet.extract(hdr.status);
        transition accept;
    }
}

control OlafDeparser(packet_out packet,
                     in headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.olaf);
        packet.emit(hdr.status);
    }
}

#endif
