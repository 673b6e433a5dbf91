package gate

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"sync"
	"time"

	"rdzv/rdzv/secret"
)

// A proof shows in the client's first message, before the store computes anything expensive, that
// the client has the key. It only gives precedence: the handshake authenticates the client. It is
// one more entry in the client's list of protocols (ALPN):
//
//	rdzv-proof/NONCE MAC   in hexadecimal, without the space
const proofPrefix = "rdzv-proof/"

// halfProof is the length of a nonce, and of a MAC.
const halfProof = 12

func proofKey(key *secret.Key) []byte { return secret.Expand(key[:], "proof", sha256.Size) }

func newProof(key []byte) string {
	nonce := make([]byte, halfProof)
	rand.Read(nonce)
	return proofPrefix + hex.EncodeToString(append(nonce, proofMAC(key, nonce)...))
}

func proofMAC(key, nonce []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(nonce)
	return mac.Sum(nil)[:halfProof]
}

// proofs accepts each proof once, so that recorded first messages do not get precedence.
type proofs struct {
	key  []byte
	mu   sync.Mutex
	used map[[halfProof]byte]bool // nonces
}

// accept reports whether a client's first message contains a proof that is new.
func (p *proofs) accept(hello []byte) bool {
	_, text, found := bytes.Cut(hello, []byte(proofPrefix))
	if !found || len(text) < 4*halfProof {
		return false
	}
	proof, err := hex.DecodeString(string(text[:4*halfProof]))
	if err != nil || !hmac.Equal(proof[halfProof:], proofMAC(p.key, proof[:halfProof])) {
		return false
	}
	nonce := [halfProof]byte(proof)
	p.mu.Lock()
	defer p.mu.Unlock()
	isNew := !p.used[nonce]
	if len(p.used) == maxUsed {
		clear(p.used) // a recorded message then gets precedence once more
	}
	p.used[nonce] = true
	return isNew
}

// maxUsed limits the memory of a shared store that runs for weeks. The store of a job, however
// large it is, sees fewer connections.
const maxUsed = 100_000

// maxHello is enough for an agent's first message, which has about 400 bytes.
const maxHello = 4096

// readHello reads the first TLS record, or what else the client sends first. It leaves the message
// to Read.
func (s *incoming) readHello() error {
	const header = 5
	s.SetReadDeadline(time.Now().Add(handshakeTimeout))
	hello := make([]byte, header, 512)
	if _, err := io.ReadFull(s.Conn, hello); err != nil {
		return err
	}
	if length := int(binary.BigEndian.Uint16(hello[3:])); hello[0] == handshakeRecord {
		hello = append(hello, make([]byte, min(length, maxHello))...)
		if _, err := io.ReadFull(s.Conn, hello[header:]); err != nil {
			return err
		}
	}
	s.hello = hello
	return nil
}

// handshakeRecord is the type of a TLS record that contains a handshake message.
const handshakeRecord = 22
