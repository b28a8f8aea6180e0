// Package tap captures at the ends of a testbed's cables: what hosts send, and what reaches them, stamped by the kernel.
package tap
