// Package aomcheck is OLAF's static verifier (paper §6, §12.2, §12.3): it decides whether an objective on the Age of
// Model holds for every arrival pattern that a description of clusters allows.
//
// A Problem says which clusters send how often, what one service takes (p/C), how many slots the queue has, what the
// workers' transmission control does, and what must hold. Verify writes the model as linear real arithmetic, asks z3 and
// cvc5 whether any allowed sample path breaks the objective, and replays what they find on the queue engine of
// fpga/engine: a violation that does not violate when replayed is never reported.
//
// # Sample paths
//
// Cluster u sends updates k = 0 … K−1, which reach the engine at A(u,k) = phase(u) + k·interval(u) + jitter(u,k). After
// the last one the queue drains. Peak AoM of a delivered frame is its departure minus the generation time of what the
// cluster delivered before (paper §6); the first frame of a cluster has no peak. A cluster that delivers fewer than two
// frames is starved, which violates every objective but loss-free. Updates that reach the engine at the same instant
// come in the order of their clusters.
package aomcheck
