// Package sched is the scheduling problem of P4INC-AOI (Xie et al., "All-Optical Interconnect Empowered by
// In-Network Computing for DML Workloads"): jobs whose workers have gradients to move, units (racks or pods) with a
// programmable switch that can aggregate for a few jobs, and an optical cross-connect between the units whose
// connections take time to change. A Problem is read from YAML, a Plan says who aggregates where, when each job
// sends and how fast, and which units are connected when.
//
// Time goes in slots. Rates, aggregating switches and connections change only where a slot begins, and in slot i
//
//   - job j sends from its arrival on, all of its workers at one rate b, at most that of a server's interface;
//   - it is aggregated by its parameter server, or by one unit's switch: that of all its workers, which then needs no server,
//     or with partial_inc that of some, whose sum goes to the server as one stream. The switch holds the job's place from
//     its first slot to its last;
//   - the server's interface takes the streams of all workers, or sums of them, at b each;
//   - a unit's switch moves, up and down together, at most its switch_rate: its workers' streams up, its servers' down;
//   - two units with c connections between them carry c·port_rate in each direction, and a unit has no more connections
//     than ports;
//   - where the connections between two units become more than they were in the slot before, what a job's rate between
//     them rises by in this slot flows only after the reconfiguration.
//
// A job is done at the end of the slot in which the last of its workers has sent its volume; its server's update,
// which a switch does on the way, comes on top. CT-BTI is the time from the first arrival until the last job is done
// (the paper's Definition 1). Repairs and docs/guide/scheduling.md describe the differences from the printed model.
package sched
