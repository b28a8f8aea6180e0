package agent

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestTrieIsAMapAndSnapshotsStay checks the trie against Go's map, and every snapshot against a copy taken at the same
// time.
func TestTrieIsAMapAndSnapshotsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var now trie[int]
		want := map[uint32]int{}
		type snapshot struct {
			trie trie[int]
			want map[uint32]int
		}
		var past []snapshot
		e := new(edit)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.OneOf(rapid.Uint32Range(0, 40), rapid.Uint32()).Draw(t, "key")
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				past = append(past, snapshot{now, maps.Clone(want)})
				e = new(edit)
			case 1, 2:
				now.remove(e, key)
				delete(want, key)
			default:
				value := rapid.Int().Draw(t, "value")
				now.put(e, key, value)
				want[key] = value
			}
		}
		past = append(past, snapshot{now, want})
		for i, s := range past {
			got := map[uint32]int{}
			s.trie.all(func(key uint32, value int) bool { got[key] = value; return true })
			if !maps.Equal(got, s.want) || s.trie.size != len(s.want) {
				t.Fatalf("snapshot %d holds %v (size %d), want %v", i, got, s.trie.size, s.want)
			}
			for key, value := range s.want {
				if v, ok := s.trie.get(key); !ok || v != value {
					t.Fatalf("snapshot %d: get(%d) = %d, %v", i, key, v, ok)
				}
			}
		}
	})
}
