// Package tap captures at the ends of a testbed's cables: what hosts send and receive, stamped by the kernel.
package tap
