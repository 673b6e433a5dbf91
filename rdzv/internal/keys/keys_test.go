package keys

import "testing"

func TestCheckName(t *testing.T) {
	for name, valid := range map[string]bool{
		"": true, "/": true, "/rdzv/": true, "/rdzv/alice/": true, "a": true, "...": true, "a.b": true,
		"a..b/": true, ".x/": true,
		"//": false, "/rdzv//alice/": false, "./x/": false, ".": false, "..": false, "/a/../b": false,
		"a/.": false,
	} {
		if err := CheckName(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}
