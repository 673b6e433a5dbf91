package meet

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"rdzv/rdzv/secret"
)

// No way of printing a Config or Meeting may print a secret.
func TestConfigAndMeetingPrintNoSecret(t *testing.T) {
	k := secret.DeriveKey(testToken, "job")
	c := Config{
		Job: "job", Join: "127.0.0.1:29600/" + k.Reveal(), Env: map[string]string{
			"RDZV_TOKEN": hex.EncodeToString(testToken), transports: hex.EncodeToString(testToken),
		},
		Token: func() ([]byte, error) { return testToken, nil },
	}
	m := &Meeting{Key: &k}
	var out strings.Builder
	for _, v := range []any{c, &c, struct{ C Config }{c}, m, *m.Key} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	text := strings.ToLower(out.String())
	dec := strings.Trim(fmt.Sprint([]byte(k[secret.PublicLen:secret.PublicLen+4])), "[]")
	for _, part := range []string{
		hex.EncodeToString(k[secret.PublicLen:])[:8], k.Reveal()[12:20], dec,
		base64.StdEncoding.EncodeToString(k[:])[12:20],
		hex.EncodeToString(testToken)[:8], string(testToken[:8]),
	} {
		if strings.Contains(text, strings.ToLower(part)) {
			t.Errorf("a secret (%s) is printed:\n%s", part, text)
		}
	}
}
