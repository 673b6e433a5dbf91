package secret

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
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

// needed ends error messages of ParseToken. Its 16 bytes are MinSecret.
const needed = "a token has at least 16 random bytes, as hex or base64url " +
	"(rdzv token prints one), or is a random UUID"

// Errors of ParseToken.
var (
	ErrShortToken = errors.New("too short: " + needed)
	errNoToken    = errors.New("not a token: " + needed)
	errWeakToken  = errors.New("too easy to guess: " + needed)
	errUUID       = errors.New("too easy to guess: only a UUID of version 4 is random")
)

// ParseToken parses a token: at least MinSecret bytes as hexadecimal, or as base64url with or
// without padding, or a UUID of version 4, which has 122 random bits. Leading and trailing white
// space is ignored. It refuses tokens that do not seem to be random, because whoever has recorded a
// beacon can try guesses offline. The error never repeats the text.
func ParseToken(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxToken {
		return nil, errNoToken
	}
	if digits, is := digitsOfUUID(text); is {
		if !randomUUID(digits) {
			return nil, errUUID
		}
		text = digits
	}
	b, err := hex.DecodeString(text)
	isHex := err == nil
	if !isHex {
		b, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	}
	switch {
	case err != nil:
		return nil, errNoToken
	case len(b) < MinSecret:
		return nil, ErrShortToken
	case distinct(b) < minDistinct, !isHex && !bothCases(text):
		return nil, errWeakToken
	}
	return b, nil
}

// digitsOfUUID returns the hexadecimal digits of a UUID as RFC 9562 writes it, 8-4-4-4-12.
func digitsOfUUID(text string) (digits string, is bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return "", false
	}
	digits = text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	_, err := hex.DecodeString(digits)
	return digits, err == nil
}

// randomUUID tells whether a UUID is of version 4: all its bits but six are random. Those of the
// other versions are made of a time, a host or a name.
func randomUUID(digits string) bool {
	return digits[12] == '4' && strings.ContainsRune("89abAB", rune(digits[16]))
}

// minDistinct is how many different bytes a token has at least. Of 16 million random tokens of
// MinSecret bytes, one has fewer. Repeated words and patterns have fewer.
const minDistinct = 9

func distinct(list []byte) int {
	seen := map[byte]bool{}
	for _, b := range list {
		seen[b] = true
	}
	return len(seen)
}

// bothCases tells whether a token in base64url has letters of both cases. Of 100,000 random ones of
// MinSecret bytes, one has not. Words with hyphens have not.
func bothCases(text string) bool {
	return text != strings.ToUpper(text) && text != strings.ToLower(text)
}
