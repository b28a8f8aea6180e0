// Package play carries schedules out. Play sends them packet by packet through a simulated network, with senders paced at the
// planned rates and with senders that know no rates and follow P4INC-AOI's congestion windows, and sets both beside the fluid
// that planners reckon with. Tables is what a switch has to be told, as one batch.
package play
