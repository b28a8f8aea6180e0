// Package olaf defines the types that all packages of olafctl share: identities, the model update, units of rate,
// size and time, the frame on the wire, and what a parameter server observed.
//
// It does no I/O, keeps no state, and imports nothing of this module. Virtual time is an integer count of
// picoseconds; sizes are bytes of the L2 frame without FCS, preamble and gap; rates are bits of that frame per second.
package olaf
