package p4ctl

import v1 "github.com/p4lang/p4runtime/go/p4/v1"

// WorkerUpdate returns the P4Runtime update that writes one worker.
func WorkerUpdate(op v1.Update_Type, w Worker) *v1.Update {
	return object{kind: kindWorker, key: addressKey(w.Address), a: uint32(w.Cluster), b: uint32(w.ID)}.toUpdate(op)
}
