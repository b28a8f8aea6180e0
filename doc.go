// Package olaf defines the types that all packages of olafctl share. These are identities, the model update, units of
// rate, size and time, the frame on the wire, and the observations of a parameter server. The package does no I/O,
// keeps no state, and imports no other package of this module. Virtual time is an integer number of picoseconds. Sizes
// are in bytes of the L2 frame without FCS, preamble and gap, and rates are in bits of such frames per second.
package olaf
