// VNP4_2 stands behind OlafQueue: updates go on to the server as they are; an ACK gets the queue's status written into
// it and goes to every worker of its cluster.
//
// VNP4 has one packet out for one packet in, so this block only names the multicast group; a replication block behind
// it makes the copies. The members of a group are MulticastGroupEntry objects, which the agent keeps.
#include <core.p4>
#include <xsa.p4>
#include "olaf.p4"

// Size of the profile; the build may define another.
#ifndef CLUSTERS
#define CLUSTERS 1024
#endif

control vnp4_2(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    bit<1> overwrite;

    @id(0x01000011) @brief("The cluster's ACKs go to the members of this multicast group.")
    action set_group(@id(1) @refers_to(builtin::multicast_group_table, multicast_group_id) bit<32> group_id) {
        meta.axis_tuser.group_id = group_id;
        meta.axis_tuser.multicast = 1;
    }

    @id(0x01000012) @brief("The cluster has no group: an ACK goes to the worker it is addressed to.")
    action unicast() {
        meta.axis_tuser.multicast = 0;
    }

    @id(0x02000011) @brief("The multicast group of every cluster.")
    table cluster_groups {
        key = {
            meta.axis_tuser.cluster_id : exact @id(1) @name("cluster_id");
        }
        actions = {
            set_group;
            @defaultonly unicast;
        }
        const default_action = unicast;
        size = CLUSTERS;
    }

    apply {
        meta.axis_tuser.multicast = 0;
        if (meta.axis_tuser.class == CLASS_ACK && hdr.status.isValid()) {
            cluster_groups.apply();
            // On a path of several hops the most loaded one is reported: active/slots compared without a division.
            overwrite = 0;
            if (hdr.status.slots == 0) {
                overwrite = 1;
            } else {
                bit<32> here = (bit<32>)meta.axis_tuser.active_clusters * (bit<32>)hdr.status.slots;
                bit<32> there = (bit<32>)hdr.status.active_clusters * (bit<32>)meta.axis_tuser.slots;
                if (here > there) {
                    overwrite = 1;
                }
            }
            if (overwrite == 1) {
                hdr.status.occupancy = meta.axis_tuser.occupancy;
                hdr.status.active_clusters = meta.axis_tuser.active_clusters;
                hdr.status.slots = meta.axis_tuser.slots;
                hdr.status.full = 0;
                if (meta.axis_tuser.occupancy >= (bit<24>)meta.axis_tuser.slots) {
                    hdr.status.full = 1;
                }
            }
        }
    }
}

XilinxPipeline(OlafParser(), vnp4_2(), OlafDeparser()) main;
