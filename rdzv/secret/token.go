package secret

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// tokenLen is how many random bytes a token made here has.
const tokenLen = 32

// maxToken is the longest text that is read as a token, in characters.
const maxToken = 4096

// NewToken makes a token as text: lower-case hex, so that no shell and no option parser minds it.
func NewToken() string {
	b := make([]byte, tokenLen)
	rand.Read(b)
	return hex.EncodeToString(b)
}

var (
	ErrShortToken = fmt.Errorf("too short: a token has at least %d bytes, as hex or base64url (rdzv token prints one)", MinSecret)
	errNoToken    = errors.New("not a token: a token is hex or base64url (rdzv token prints one)")
	errWeakToken  = errors.New("too weak: all its bytes are the same")
)

// ParseToken reads a token as text: hex, or base64url with or without padding, of at least
// MinSecret bytes; blanks around it do not count. The error never repeats the text.
func ParseToken(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxToken {
		return nil, errNoToken
	}
	b, err := hex.DecodeString(text)
	if err != nil {
		b, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	}
	switch {
	case err != nil:
		return nil, errNoToken
	case len(b) < MinSecret:
		return nil, ErrShortToken
	case strings.Count(string(b), string(b[:1])) == len(b):
		return nil, errWeakToken
	}
	return b, nil
}
