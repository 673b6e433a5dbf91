package secret

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// tokenLen is the number of random bytes in a token made by NewToken.
const tokenLen = 32

// maxToken is the maximum length of a token as text, in characters.
const maxToken = 4096

// NewToken returns a random token as text: lower-case hexadecimal, which needs no quoting in a
// shell.
func NewToken() string {
	b := make([]byte, tokenLen)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// Errors of ParseToken.
var (
	ErrShortToken = fmt.Errorf("too short: a token has at least %d bytes, as hex or base64url "+
		"(rdzv token prints one)", MinSecret)
	errNoToken   = errors.New("not a token: a token is hex or base64url (rdzv token prints one)")
	errWeakToken = errors.New("too weak: all its bytes are the same")
)

// ParseToken parses a token: at least MinSecret bytes as hexadecimal, or as base64url with or
// without padding. Leading and trailing white space is ignored. The error never repeats the text.
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
