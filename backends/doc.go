// Package backends contains the rows of the table of devices (testbed.Devices) for the devices that a program need not
// have: cards, kernel queues, network interfaces, the engine in user space, simulated logic and recorded sessions. Only
// cmd imports it and hands the rows to the rooms below.
package backends
