package gate

import (
	"bytes"
	"testing"

	"rdzv/rdzv/secret"
)

func TestProof(t *testing.T) {
	key, other := secret.DeriveKey(testToken, "job"), secret.DeriveKey(testToken, "other job")
	good := newProof(proofKey(&key))
	p := &proofs{key: proofKey(&key), used: map[[halfProof]byte]bool{}}
	for _, test := range []struct {
		name, hello string
		want        bool
	}{
		{"nothing", "", false},
		{"key of another job", newProof(proofKey(&other)), false},
		{"too short", good[:len(good)-1], false},
		{"not hexadecimal", good[:len(good)-1] + "x", false},
		{"other nonce", proofPrefix + "00" + good[len(proofPrefix)+2:], false},
		{"good", "\x00\x05hello" + good + "\x00", true},
		{"replayed", "\x00\x05hello" + good + "\x00", false},
		{"another good one", newProof(proofKey(&key)), true},
	} {
		if got := p.accept([]byte(test.hello)); got != test.want {
			t.Errorf("%s: accepted %t, want %t", test.name, got, test.want)
		}
	}
}

func TestProofsUseLimitedMemory(t *testing.T) {
	key := secret.DeriveKey(testToken, "job")
	p := &proofs{key: proofKey(&key), used: map[[halfProof]byte]bool{}}
	for range maxUsed + 1 {
		if !p.accept([]byte(newProof(p.key))) {
			t.Fatal("a new proof was not accepted")
		}
	}
	if len(p.used) > maxUsed {
		t.Errorf("%d proofs are kept, want at most %d", len(p.used), maxUsed)
	}
}

func FuzzProof(f *testing.F) {
	key := secret.DeriveKey(testToken, "job")
	f.Add([]byte(newProof(proofKey(&key))))
	f.Fuzz(func(t *testing.T, hello []byte) {
		p := &proofs{key: proofKey(&key), used: map[[halfProof]byte]bool{}}
		if p.accept(hello) && !bytes.Contains(hello, []byte(proofPrefix)) {
			t.Errorf("accepted %q", hello)
		}
	})
}
