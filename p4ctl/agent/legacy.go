//lint:file-ignore SA1019 these fields are deprecated, but other controllers still write them and want them back

package agent

import v1 "github.com/p4lang/p4runtime/go/p4/v1"

func legacyMetadata(te *v1.TableEntry) uint64 { return te.ControllerMetadata }

func setLegacyMetadata(te *v1.TableEntry, m uint64) { te.ControllerMetadata = m }

func legacyPort(r *v1.Replica_EgressPort) uint32 { return r.EgressPort }

func newLegacyPort(port uint32) *v1.Replica_EgressPort {
	return &v1.Replica_EgressPort{EgressPort: port}
}
