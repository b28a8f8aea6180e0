package cli

import (
	"testing"

	"github.com/olafctl/olaf/internal/yamlfile/yamlfiletest"
)

// FuzzConfig checks that each mistake names a line of the file, and that each accepted value belongs to a setting and
// names its line.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"device: pci:0000:3b:00.0\nstore: runs\nkeep: false\nmouse: true\ntheme: dark\n", "{}", "# nothing\n", "---\n", "~", "a: 1\nb: 2\ndevize: x\n", "device: [a]\n",
		"theme: dark\n---\ntheme: light\n", "device: a\ndevice: b\n", "- a\n", "\"a\\nb\": 1\n", "device: !!binary YQ==\n", "device: &a x\nstore: *a\n", "tls-ca: ../ca.pem\n", "device: 'x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := &config{file: "/home/me/config.yaml"}
		if err := c.parseText([]byte(text)); err != nil {
			yamlfiletest.CheckMistakes(t, err, ErrConfig, c.file, text)
			return
		}
		env, said := &Env{Getenv: func(string) string { return "" }}, 0
		for i := range settings {
			_, from, where := c.lookupSetting(env, &settings[i])
			if from == fromFile {
				said++
			}
			if (where == "") != (from == fromDefault) {
				t.Errorf("%s is from %q, %s", settings[i].flag, where, from)
			}
		}
		if said != len(c.values) {
			t.Errorf("%d settings of %d values", said, len(c.values))
		}
	})
}
