package yamldoc

import "testing"

func TestRoot(t *testing.T) {
	for text, want := range map[string]struct {
		value  string
		second int
		fails  bool
	}{
		"a": {value: "a"}, "---\na\n": {value: "a"}, "a\n...\n": {value: "a"}, "--- a\n--- b\n": {second: 2},
		"a\n---\n# more\nb: 1\n": {second: 2}, "---\n---\n": {second: 2},
		"": {}, "# only words\n": {}, "---\n": {}, "~": {}, "null": {}, "'": {fails: true}, "a\n---\n'": {fails: true},
		"a\x10": {fails: true},
	} {
		root, second, err := FindRoot([]byte(text))
		value := ""
		if root != nil {
			value = root.Value
		}
		if value != want.value || second != want.second || (err != nil) != want.fails || (root == nil) != (want.value == "") {
			t.Errorf("%q: %q, line %d, %v", text, value, second, err)
		}
	}
}
