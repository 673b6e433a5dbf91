package envmap

import "testing"

func changes(t testing.TB, env Env, id Identity, o TorchOptions) Changes {
	t.Helper()
	c, err := TorchChanges(env, id, o)
	if err != nil {
		t.Fatalf("TorchChanges: %v", err)
	}
	return c
}

// value returns the value that a variable is set to, "" if it is not set.
func (c Changes) value(name string) string {
	if i := c.position(name); i >= 0 {
		return c.Set[i].Value
	}
	return ""
}
