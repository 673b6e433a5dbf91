package secret

import "testing"

func TestAuthorityDependsOnlyOnTheKey(t *testing.T) {
	k := DeriveKey(testToken, "job")
	_, a, err := k.authority()
	if err != nil {
		t.Fatal(err)
	}
	_, b, err := k.authority()
	if err != nil {
		t.Fatal(err)
	}
	if !a.Equal(b) {
		t.Error("the same key gives two authorities")
	}
	s1, err1 := k.ServerTLS()
	s2, err2 := k.ServerTLS()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if s1.Certificates[0].Leaf.Equal(s2.Certificates[0].Leaf) {
		t.Error("two stores have the same certificate")
	}
}
