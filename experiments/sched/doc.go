// Package sched defines the scheduling problem of P4INC-AOI (Xie et al., "All-Optical Interconnect Empowered by
// In-Network Computing for DML Workloads"): jobs whose workers send gradients, units (racks or pods) with a
// programmable switch that can aggregate for a few jobs, and an optical cross-connect between the units whose
// connections take time to change. A Problem is read from YAML. A Plan gives each job's aggregator, its slots and
// rates, and the connections between units. GenerateProblem draws the workloads of the paper's simulations, and
// CheckPlan checks a plan against every rule below.
//
// Time is divided into slots. Rates, aggregating switches and connections change only at the start of a slot, and in
// slot i
//
//   - job j sends from its arrival on, all of its workers at one rate b, at most that of a server's interface;
//   - it is aggregated by its parameter server or by one unit's switch. That unit has all its workers, and then no server
//     is needed, or with partial_inc some of them, and their sum goes to the server as one stream. The job occupies a place in
//     the switch from its first slot to its last;
//   - the server's interface takes the streams of all workers, or sums of them, at b each;
//   - a unit's switch moves, up and down together, at most its switch_rate: its workers' streams up, its servers' down;
//   - two units with c connections between them carry c·port_rate in each direction, and a unit has no more connections
//     than ports;
//   - if the connections between two units increase in a slot, the increase of a job's rate between them flows only
//     after the reconfiguration.
//
// A job is done at the end of the slot in which the last of its workers has sent its volume, plus its server's update,
// which takes no time on a switch. CT-BTI is the time from the first arrival until the last job is done
// (the paper's Definition 1). Repairs and docs/guide/scheduling.md describe the differences from the printed model.
package sched
