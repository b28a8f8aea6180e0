// Package dataplane defines how a card in real time (package realtime) uses the part that decides about frames: kernel
// programs (package xdp) or the engine in user space (package host). A Replayer checks their decisions.
package dataplane
