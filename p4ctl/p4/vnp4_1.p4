// VNP4_1 stands before OlafQueue: who sent this packet, and is it an update for the engine?
//
// A server's packet is looked up by its destination, everybody else's by its source, so that one table of workers
// serves both directions with a single lookup. Checksums are the business of the queue's entrance, where the whole
// frame is seen.
#include <core.p4>
#include <xsa.p4>
#include "olaf.p4"

// Sizes of the profile; the build may define others.
#ifndef WORKERS
#define WORKERS 1024
#endif
#ifndef SERVERS
#define SERVERS 32
#endif

control vnp4_1(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    @id(0x01000001) @brief("The address belongs to a worker: these are its cluster and its id.")
    action set_worker(@id(1) bit<16> cluster_id, @id(2) bit<16> worker_id) {
        meta.axis_tuser.cluster_id = cluster_id;
        meta.axis_tuser.worker_id = worker_id;
        meta.known_worker = 1;
    }

    @id(0x01000002) @brief("Nobody knows the address: the packet passes by the engine.")
    action bypass() {
        meta.known_worker = 0;
    }

    @id(0x01000003) @brief("The packet comes from a parameter server.")
    action set_server() {
        meta.from_server = 1;
    }

    @id(0x01000004) @brief("The packet does not come from a parameter server.")
    action not_server() {
        meta.from_server = 0;
    }

    @id(0x02000001) @brief("Parameter servers by IPv4 source address.")
    table servers {
        key = {
            hdr.ipv4.src : exact @id(1) @name("address");
        }
        actions = {
            set_server;
            @defaultonly not_server;
        }
        const default_action = not_server;
        size = SERVERS;
    }

    @id(0x02000002) @brief("Workers by IPv4 address: the source of an update, the destination of an ACK.")
    table workers {
        key = {
            meta.worker_address : exact @id(1) @name("address");
        }
        actions = {
            set_worker;
            @defaultonly bypass;
        }
        const default_action = bypass;
        size = WORKERS;
    }

    apply {
        meta.axis_tuser.class = CLASS_BYPASS;
        meta.axis_tuser.misidentified = 0;
        if (hdr.ipv4.isValid()) {
            servers.apply();
            if (meta.from_server == 1) {
                meta.worker_address = hdr.ipv4.dst;
            } else {
                meta.worker_address = hdr.ipv4.src;
            }
            workers.apply();
            if (hdr.olaf.isValid() && meta.known_worker == 1) {
                if (hdr.olaf.type == TYPE_UPDATE && meta.from_server == 0) {
                    meta.axis_tuser.class = CLASS_UPDATE;
                }
                if (hdr.olaf.type == TYPE_ACK && meta.from_server == 1) {
                    meta.axis_tuser.class = CLASS_ACK;
                }
                // The table is the truth; the header may be wrong, and that is counted behind this block.
                if (hdr.olaf.cluster_id != meta.axis_tuser.cluster_id) {
                    meta.axis_tuser.misidentified = 1;
                }
                if (hdr.olaf.worker_id != meta.axis_tuser.worker_id) {
                    meta.axis_tuser.misidentified = 1;
                }
            }
        }
    }
}

XilinxPipeline(OlafParser(), vnp4_1(), OlafDeparser()) main;
