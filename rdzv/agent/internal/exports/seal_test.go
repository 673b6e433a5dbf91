package exports

import (
	"testing"

	"rdzv/rdzv/secret"
)

// What is exported may be a secret: without a key agents neither publish nor accept it, unless etcd
// decides who may read it.
func TestSealWithoutKey(t *testing.T) {
	e := Exports{Variables: []string{"A=1", "B=2"}}
	key := secret.NewKey()
	for name, c := range map[string]struct {
		key    *secret.Key
		inEtcd bool
		fails  bool
	}{
		"a key": {&key, false, false}, "etcd": {nil, true, false}, "neither": {nil, false, true},
	} {
		sealed, err := e.Seal(c.key, c.inEtcd)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v, %v", name, sealed, err)
		}
		if err != nil {
			continue
		}
		if got, err := Open(sealed.Sealed, c.key, c.inEtcd); err != nil || len(got) != 2 {
			t.Errorf("%s: opened %q, %v", name, got, err)
		}
	}
}
