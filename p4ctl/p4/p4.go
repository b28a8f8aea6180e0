// Package p4 contains the P4 programs for the two VNP4 blocks and their P4Runtime description: IDs, sizes, and the
// P4Info of the single logical device that they form. The P4Info is written by hand because the vendor's compiler does
// not generate one.
package p4

import (
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/olafctl/olaf/fpga/program"
)

//go:embed olaf.p4 vnp4_1.p4 vnp4_2.p4
var sources embed.FS

//go:embed olaf.p4info.txtpb
var infoText []byte

// Blocks returns the names of the two programs in the order in which packets pass through them.
func Blocks() []string { return []string{"vnp4_1", "vnp4_2"} }

// DeviceID is the P4Runtime device ID of the logical device.
const DeviceID = 1

// Ids of tables, actions, match fields and parameters. The @id annotations in the sources and the P4Info use the same
// ids.
const (
	TableServers       uint32 = 0x02000001 // vnp4_1.servers: address → set_server
	TableWorkers       uint32 = 0x02000002 // vnp4_1.workers: address → set_worker
	TableClusterGroups uint32 = 0x02000011 // vnp4_2.cluster_groups: cluster_id → set_group

	ActionSetWorker uint32 = 0x01000001
	ActionSetServer uint32 = 0x01000003
	ActionSetGroup  uint32 = 0x01000011
)

// Profile describes a build of the blocks. Profiles differ only in sizes.
type Profile struct {
	Name     string `json:"name"`
	Workers  int    `json:"workers"`  // number of entries in vnp4_1.workers, and of replicas in all multicast groups together
	Servers  int    `json:"servers"`  // number of entries in vnp4_1.servers
	Clusters int    `json:"clusters"` // number of entries in vnp4_2.cluster_groups, and of multicast groups
}

// Lab returns the profile that fits on a card together with the queue.
func Lab() Profile { return Profile{Name: "lab", Workers: 1024, Servers: 32, Clusters: 1024} }

// Twin returns the profile that supports all IDs that the fields can represent.
func Twin() Profile { return Profile{Name: "twin", Workers: 65536, Servers: 32, Clusters: 65536} }

// Info returns the P4Info of the profile, including the tables of the given switch programs. The caller owns the
// result.
func (p Profile) Info(programs ...program.Description) *configv1.P4Info {
	info := new(configv1.P4Info)
	if err := prototext.Unmarshal(infoText, info); err != nil {
		panic("p4: the embedded P4Info does not parse: " + err.Error())
	}
	for _, t := range info.Tables {
		switch t.Preamble.Id {
		case TableServers:
			t.Size = int64(p.Servers)
		case TableWorkers:
			t.Size = int64(p.Workers)
		case TableClusterGroups:
			t.Size = int64(p.Clusters)
		}
	}
	limits := info.PkgInfo.PlatformProperties
	limits.MulticastGroupTableSize = int32(p.Clusters)
	limits.MulticastGroupTableTotalReplicas = int32(p.Workers)
	p.join(info, programs)
	return info
}

// InfoText returns the P4Info of the profile in text form, for other clients. It omits the platform properties, which
// clients older than P4Runtime 1.4 cannot parse. The agent enforces the limits all the same.
func (p Profile) InfoText(programs ...program.Description) []byte {
	info := p.Info(programs...)
	info.PkgInfo.PlatformProperties = nil
	text, err := prototext.MarshalOptions{Multiline: true}.Marshal(info)
	if err != nil {
		panic("p4: P4Info does not print: " + err.Error())
	}
	// prototext varies its spaces on purpose, but this text is compared with a golden file.
	return []byte(strings.ReplaceAll(string(text), ":  ", ": "))
}

// DeviceConfig is the p4_device_config of a profile. It contains the sizes and the source hashes of the expected build.
type DeviceConfig struct {
	Schema  string            `json:"schema"`
	Profile Profile           `json:"profile"`
	Sources map[string]string `json:"sources"` // block → SHA-256 of its source and the files that it includes
	// Programs lists the switch programs whose tables the pipeline has in addition to the tables of the blocks.
	Programs []string `json:"programs,omitempty"`
}

// deviceConfigSchema is the schema name of our device configs.
const deviceConfigSchema = "olafctl.p4-device-config/v1"

// DeviceConfig returns the p4_device_config of the profile as JSON.
func (p Profile) DeviceConfig(programs ...program.Description) []byte {
	c := DeviceConfig{Schema: deviceConfigSchema, Profile: p, Sources: make(map[string]string)}
	for _, b := range Blocks() {
		c.Sources[b] = hashSources(b)
	}
	for i := range programs {
		if len(programs[i].Tables) > 0 {
			c.Programs = append(c.Programs, programs[i].Name)
		}
	}
	out, err := json.Marshal(c)
	if err != nil {
		panic("p4: device config: " + err.Error())
	}
	return out
}

func hashSources(block string) string {
	sum := sha256.New()
	for _, name := range []string{"olaf.p4", block + ".p4"} {
		sum.Write(mustSource(name))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// mustSource returns an embedded file. It panics if the file does not exist.
func mustSource(name string) []byte {
	text, err := sources.ReadFile(name)
	if err != nil {
		panic("p4: " + err.Error())
	}
	return text
}

// Source returns the text of olaf.p4, vnp4_1.p4 or vnp4_2.p4.
func Source(name string) ([]byte, error) { return sources.ReadFile(name) }

// Cookie returns the cookie of a pipeline config, which is the first 64 bits of a hash over both parts.
func Cookie(info *configv1.P4Info, deviceConfig []byte) uint64 {
	sum := sha256.Sum256(append([]byte(Hash(info)), deviceConfig...))
	return binary.BigEndian.Uint64(sum[:8])
}

// Hash returns the SHA-256 digest of a P4Info in its deterministic wire form. The digest is stable within one version
// of this program.
func Hash(info *configv1.P4Info) string {
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(info)
	if err != nil {
		return "invalid"
	}
	sum := sha256.Sum256(wire)
	return hex.EncodeToString(sum[:])
}

// CanonicalBytes returns the shortest byte string that represents a number. Zero is represented by one byte.
func CanonicalBytes(n uint32) []byte {
	wide := binary.BigEndian.AppendUint32(nil, n)
	for len(wide) > 1 && wide[0] == 0 {
		wide = wide[1:]
	}
	return wide
}
