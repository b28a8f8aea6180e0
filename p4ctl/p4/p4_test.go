package p4

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

func TestProfilesDifferInSizesOnly(t *testing.T) {
	lab, twin := Lab().Info(), Twin().Info()
	if lab.Tables[1].Size != 1024 || twin.Tables[1].Size != 65536 ||
		twin.PkgInfo.PlatformProperties.MulticastGroupTableSize != 65536 {
		t.Errorf("sizes are wrong: lab %v, twin %v", lab.Tables[1].Size, twin.Tables[1].Size)
	}
	for _, info := range []*configv1.P4Info{lab, twin} {
		info.PkgInfo.PlatformProperties = nil
		for _, table := range info.Tables {
			table.Size = 0
		}
	}
	if !proto.Equal(lab, twin) {
		t.Error("the profiles differ in more than sizes")
	}
	if Hash(Lab().Info()) == Hash(Twin().Info()) || Hash(lab) != Hash(twin) {
		t.Error("the hash does not tell P4Infos apart")
	}
	if bytes.Equal(Lab().DeviceConfig(), Twin().DeviceConfig()) {
		t.Error("the device configs of both profiles are equal")
	}
}

func TestInfoTextReadsBack(t *testing.T) {
	got := new(configv1.P4Info)
	if err := prototext.Unmarshal(Twin().InfoText(), got); err != nil {
		t.Fatal(err)
	}
	want := Twin().Info()
	want.PkgInfo.PlatformProperties = nil
	if !proto.Equal(got, want) {
		t.Error("the text reads back as something else")
	}
	if diff := cmp.Diff(string(Twin().InfoText()), string(Twin().InfoText())); diff != "" {
		t.Error(diff)
	}
}
