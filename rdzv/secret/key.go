package secret

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
)

// A Key is what the agents of one job have and nobody else: everything between them is
// authenticated and encrypted with it.
//
// Its first 8 bytes are the job's public name, a digest of the job's identity that is sent in the
// clear, so that two agents of one job with different secrets can tell so to their users; the other
// 24 are secret. No way of printing a Key shows those.
type Key [32]byte

const PublicLen = 8

// MinSecret is the least length of a secret, in bytes: 128 bits, because whoever sees a certificate
// made from a weaker secret could find the secret by trying.
const MinSecret = 16

// DeriveKey makes the key of the job with the given identity from a secret of at least MinSecret
// bytes. It panics when the secret is shorter: no caller may get that far (see ParseToken).
func DeriveKey(secret []byte, job string) Key {
	if len(secret) < MinSecret {
		panic(fmt.Sprintf("secret: a job key from %d bytes", len(secret)))
	}
	k := Key(append(PublicName(job), make([]byte, len(Key{})-PublicLen)...))
	copy(k[PublicLen:], Expand(secret, "job\x00"+job, len(k)-PublicLen))
	return k
}

// NewKey makes a random key, of a job that nobody can name otherwise.
func NewKey() Key {
	var k Key
	rand.Read(k[:])
	return k
}

func PublicName(job string) []byte {
	sum := sha256.Sum256([]byte("rdzv/v1 public name\x00" + job))
	return sum[:PublicLen]
}

// Expand derives n bytes for one purpose; different purposes never share bytes.
func Expand(secret []byte, purpose string, n int) []byte {
	out, err := hkdf.Key(sha256.New, secret, []byte("rdzv/v1"), purpose, n)
	if err != nil {
		panic("secret: " + err.Error()) // only for absurd lengths
	}
	return out
}

// Public is the job's public name in hex.
func (k Key) Public() string { return hex.EncodeToString(k[:PublicLen]) }

// String names the key by its public part.
func (k Key) String() string { return "key of job " + k.Public() }

// Format prints String whatever the verb, so that not even %x shows the secret.
func (k Key) Format(s fmt.State, _ rune) { io.WriteString(s, k.String()) }

// MarshalText gives String, for encoders and loggers.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Reveal is the whole key as text, for the join line and for PMI alone.
func (k Key) Reveal() string { return base64.RawURLEncoding.EncodeToString(k[:]) }

// ParseKey reads what Reveal wrote. Its error does not repeat the text, which may be nearly a key.
func ParseKey(text string) (Key, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != len(Key{}) || len(text) != base64.RawURLEncoding.EncodedLen(len(b)) {
		return Key{}, fmt.Errorf("not a key (%d characters; a key has %d)", len(text), base64.RawURLEncoding.EncodedLen(len(Key{})))
	}
	if bytes.Equal(b, make([]byte, len(b))) {
		return Key{}, fmt.Errorf("not a key (all zero)")
	}
	return Key(b), nil
}
