// Package aomcheck is OLAF's static verifier (paper §6, §12.2, §12.3): it decides whether an objective on the Age of
// Model is satisfied for every arrival pattern that a description of clusters allows.
//
// A Problem defines the clusters with their send intervals, the service time (p/C), the number of slots, the
// workers' transmission control, and the objective. Verify writes the model as linear real arithmetic, asks z3 and
// cvc5 whether any allowed sample path breaks the objective, and replays their answer on the queue engine of
// fpga/engine: a counter-example that the replay does not confirm is never reported.
//
// # Sample paths
//
// Cluster u sends updates k = 0 … K−1, which reach the engine at A(u,k) = phase(u) + k·interval(u) + jitter(u,k). After
// the last one the queue drains. The peak AoM of a delivered frame is its departure minus the generation time of the
// cluster's previous delivery (paper §6); the first frame of a cluster has no peak. A cluster that delivers fewer than
// two
// frames is starved, which violates every objective but loss-free. Updates that reach the engine at the same instant
// are ordered by cluster.
package aomcheck
