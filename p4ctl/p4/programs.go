package p4

import (
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/olafctl/olaf/fpga/program"
)

// Table is a table of a switch program in a pipeline. Its IDs are computed from the program's code and the position of
// the table, so that any programs can share a pipeline. The IDs of key fields and parameters count from 1.
type Table struct {
	*program.Table
	Program   *program.Description
	Place     int // index among the program's tables
	ID        uint32
	ActionID  uint32 // action of entries
	DefaultID uint32
}

// The highest byte of a table or action id is its kind. The bytes below are the program's code plus 1 and the index of
// the table or action. Each table has two actions: one for entries and the default action.
const (
	tableKind  uint32 = 0x02 << 24
	actionKind uint32 = 0x01 << 24
)

// TablesOf returns the tables of the programs, in order.
func TablesOf(programs []program.Description) (tables []Table) {
	for i := range programs {
		d := &programs[i]
		for k := range d.Tables {
			base := d.Code<<8 + uint32(k)
			action := actionKind | d.Code<<8 + uint32(2*k)
			tables = append(tables, Table{Table: &d.Tables[k], Program: d, Place: k, ID: tableKind | base + 1,
				ActionID: action + 1, DefaultID: action + 2})
		}
	}
	return tables
}

// join adds the tables of the programs to a P4Info and includes the programs in its name.
func (p Profile) join(info *configv1.P4Info, programs []program.Description) {
	var names []string
	for i := range programs {
		if len(programs[i].Tables) > 0 {
			names = append(names, programs[i].Name)
		}
	}
	for _, t := range TablesOf(programs) {
		info.Tables = append(info.Tables, t.info(p))
		info.Actions = append(info.Actions, t.actions()...)
	}
	if len(names) > 0 {
		info.PkgInfo.Name = strings.Join(names, "+")
		info.PkgInfo.Doc.Brief = "VNP4_1 and VNP4_2 around the queue and a switch program, one logical device"
	}
}

// size returns the capacity of the table in a profile: one entry per worker or one per job.
func (t *Table) size(p Profile) int64 {
	if t.ByMember() {
		return int64(p.Workers)
	}
	return int64(p.Clusters)
}

func (t *Table) info(p Profile) *configv1.Table {
	info := &configv1.Table{
		Preamble: newPreamble(t.ID, t.Name, t.Doc),
		ActionRefs: []*configv1.ActionRef{{Id: t.ActionID},
			{Id: t.DefaultID, Scope: configv1.ActionRef_DEFAULT_ONLY}},
		ConstDefaultActionId: t.DefaultID,
		Size:                 t.size(p),
	}
	for i, f := range t.Key {
		info.MatchFields = append(info.MatchFields, &configv1.MatchField{
			Id: uint32(i) + 1, Name: f.Name, Bitwidth: int32(f.Bits),
			Match: &configv1.MatchField_MatchType_{MatchType: configv1.MatchField_EXACT},
		})
	}
	return info
}

func (t *Table) actions() []*configv1.Action {
	hit := &configv1.Action{Preamble: newPreamble(t.ActionID, t.ActionName(), t.Does)}
	for i, f := range t.Params {
		hit.Params = append(hit.Params, &configv1.Action_Param{Id: uint32(i) + 1, Name: f.Name, Bitwidth: int32(f.Bits)})
	}
	control, _, _ := strings.Cut(t.Name, ".")
	return []*configv1.Action{hit, {Preamble: newPreamble(t.DefaultID, control+"."+t.Table.Miss, t.Without)}}
}

// ActionName returns the qualified name of the action in the table's entries.
func (t *Table) ActionName() string {
	control, _, _ := strings.Cut(t.Name, ".")
	return control + "." + t.Action
}

func newPreamble(id uint32, name, brief string) *configv1.Preamble {
	return &configv1.Preamble{Id: id, Name: name, Alias: name[strings.LastIndexByte(name, '.')+1:],
		Doc: &configv1.Documentation{Brief: brief}}
}

// Number packs the key fields of an entry into a number. The first field is in the highest bits.
func (t *Table) Number(key []uint32) (n uint32) {
	for i, v := range key {
		n = n<<t.Key[i].Bits | v
	}
	return n
}

// Fields unpacks a key that Number packed.
func (t *Table) Fields(n uint32) []uint32 {
	key := make([]uint32, len(t.Key))
	for i := len(key) - 1; i >= 0; i-- {
		key[i] = n & (1<<t.Key[i].Bits - 1)
		n = uint32(uint64(n) >> t.Key[i].Bits)
	}
	return key
}
