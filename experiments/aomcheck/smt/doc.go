// Package smt writes quantifier-free linear real arithmetic as SMT-LIB 2 and runs z3 and cvc5 on it.
//
// A Script contains declared variables with their ranges and named assertions. Every variable has a range, and a
// comparison that the ranges already decide becomes true or false while the script is built. This keeps a model of many
// updates linear in its length: pairs of updates that cannot meet vanish before a solver sees them.
// Solvers are separate processes, found on PATH; the package links no solver library.
package smt
