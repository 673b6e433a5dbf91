package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestDeriveKey(t *testing.T) {
	k := DeriveKey(testToken, "job")
	if k != DeriveKey(testToken, "job") {
		t.Error("the same secret and job give two keys")
	}
	other := DeriveKey([]byte("another token, 24 bytes."), "job")
	if k.Public() != other.Public() || bytes.Equal(k[PublicLen:], other[PublicLen:]) {
		t.Error("a different secret must change the secret part only")
	}
	job := DeriveKey(testToken, "job2")
	if job.Public() == k.Public() || bytes.Equal(k[PublicLen:], job[PublicLen:]) {
		t.Error("a different job must change both parts")
	}
	if a, b := NewKey(), NewKey(); a == b {
		t.Error("two random keys are equal")
	}
}

func TestShortSecretPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("DeriveKey accepts a secret of 15 bytes")
		}
	}()
	DeriveKey(make([]byte, 15), "job")
}

// No way of printing a value that contains a secret may print the secret.
func TestSecretsAreNotPrinted(t *testing.T) {
	k := DeriveKey(testToken, "job")
	src := TokenSource{Text: hex.EncodeToString(testToken)}
	var out strings.Builder
	values := []any{k, &k, []Key{k}, map[string]*Key{"k": &k}, struct{ K Key }{k}, src, &src}
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", k)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", k)
	}
	b, err := json.Marshal(map[string]any{"k": k, "p": &k})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	text := strings.ToLower(out.String())
	dec := strings.Trim(fmt.Sprint([]byte(k[PublicLen:PublicLen+4])), "[]")
	for _, secret := range []string{
		hex.EncodeToString(k[PublicLen:])[:8], k.Reveal()[12:20], dec,
		base64.StdEncoding.EncodeToString(k[:])[12:20],
		hex.EncodeToString(testToken)[:8], string(testToken[:8]),
	} {
		if strings.Contains(text, strings.ToLower(secret)) {
			t.Errorf("a secret (%s) is printed:\n%s", secret, text)
		}
	}
}

func TestParseKey(t *testing.T) {
	k := NewKey()
	if got, err := ParseKey(k.Reveal()); err != nil || got != k {
		t.Errorf("ParseKey(Reveal) = %v, %v", got, err)
	}
	for _, bad := range []string{
		"", "x", k.Reveal() + "A", k.Reveal()[1:], k.Reveal() + "\n",
		strings.Repeat("A", 43), strings.Repeat("é", 43),
	} {
		if _, err := ParseKey(bad); err == nil {
			t.Errorf("ParseKey(%q) succeeds", bad)
		} else if len(bad) > 40 && strings.Contains(err.Error(), bad[:20]) {
			t.Errorf("the error repeats the text: %v", err)
		}
	}
}
