package secret

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
)

// tokenLen is the number of random bytes in a token made by NewToken.
const tokenLen = 32

// maxToken is the maximum length of a token in bytes.
const maxToken = 4096

// NewToken returns a random token as text: lower-case hexadecimal, which needs no quoting in a
// shell.
func NewToken() string {
	b := make([]byte, tokenLen)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// Errors of ParseToken, with MinSecret and maxToken.
var (
	ErrShortToken = errors.New("too short: a token has at least 16 bytes, which are random " +
		"(rdzv token prints one)")
	errLongToken = errors.New("too long: a token has at most 4096 bytes")
)

// ParseToken returns the token that a text has besides leading and trailing white space: MinSecret
// to 4096 bytes. It is to be random, because whoever has recorded a beacon can try guesses offline.
// The error never repeats the text.
func ParseToken(text string) ([]byte, error) {
	token := []byte(strings.TrimSpace(text))
	switch {
	case len(token) < MinSecret:
		return nil, ErrShortToken
	case len(token) > maxToken:
		return nil, errLongToken
	}
	return token, nil
}
