// Package sshlinktest provides hosts for tests. Each host is a network namespace of this machine in which sshd runs.
package sshlinktest
