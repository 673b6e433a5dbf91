package secret

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A Key is the secret of one job. It authenticates and encrypts all connections between the agents.
//
// Its first 8 bytes are the job's public name, a digest of the job's identity that is sent
// unencrypted, so that two agents of one job that have different secrets can report that to their
// users. The other 24 bytes are secret, and no way of printing a Key shows them.
type Key [32]byte

// PublicLen is the length of a job's public name in bytes.
const PublicLen = 8

// MinSecret is the minimum length of a secret in bytes (128 bits). A weaker secret could be found
// by trial, because certificates derived from it are sent unencrypted.
const MinSecret = 16

// DeriveKey derives the key of the job with the given identity from a secret. It panics if the
// secret is shorter than MinSecret, which ParseToken rejects.
func DeriveKey(secret []byte, job string) Key {
	if len(secret) < MinSecret {
		panic(fmt.Sprintf("secret: cannot derive a job key from %d bytes", len(secret)))
	}
	own := Expand(secret, "job\x00"+job, len(Key{})-PublicLen)
	return Key(append(PublicName(job), own...))
}

// OpenKey returns the key of a job without a secret (--insecure), whose public name it is:
// everybody can have it.
func OpenKey(public []byte) Key {
	return Key(append(slices.Clone(public[:PublicLen]), "no secret: everybody has"...))
}

// NewKey returns a random key, for a job that no identity names.
func NewKey() Key {
	var k Key
	rand.Read(k[:])
	return k
}

// PublicName returns the public name of the job with the given identity.
func PublicName(job string) []byte {
	sum := sha256.Sum256([]byte("rdzv/v1 public name\x00" + job))
	return sum[:PublicLen]
}

// Expand derives n bytes from the secret with HKDF-SHA256 (RFC 5869). Bytes derived for different
// purposes are independent.
func Expand(secret []byte, purpose string, n int) []byte {
	out, err := hkdf.Key(sha256.New, secret, []byte("rdzv/v1"), purpose, n)
	if err != nil {
		panic("secret: " + err.Error()) // n is too large for HKDF
	}
	return out
}

// Public returns the job's public name in hexadecimal.
func (k Key) Public() string { return hex.EncodeToString(k[:PublicLen]) }

// String returns a text with the public name only.
func (k Key) String() string { return "key of job " + k.Public() }

// Format prints String for every verb, so that %x does not show the secret either.
func (k Key) Format(s fmt.State, _ rune) { io.WriteString(s, k.String()) }

// MarshalText returns String, for encoders and loggers.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Reveal returns the whole key as text. Only the join line and the value put through PMI may
// contain it.
func (k Key) Reveal() string { return base64.RawURLEncoding.EncodeToString(k[:]) }

// ParseKey parses the result of Reveal. Its error does not repeat the text, which may be a mistyped
// key.
func ParseKey(text string) (Key, error) {
	length := base64.RawURLEncoding.EncodedLen(len(Key{}))
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != len(Key{}) || len(text) != length {
		return Key{}, fmt.Errorf("not a key (%d characters; a key has %d)", len(text), length)
	}
	if Key(b) == (Key{}) {
		return Key{}, errors.New("not a key (all bytes are zero)")
	}
	return Key(b), nil
}
