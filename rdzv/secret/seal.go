package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
)

// Seal encrypts and authenticates text for a purpose, with a key derived from k (AES-256-GCM with a
// random nonce). What is sealed for one purpose cannot be opened for another.
func (k Key) Seal(purpose string, text []byte) []byte {
	return k.sealer(purpose).Seal(nil, nil, text, nil)
}

// Open returns the text of Seal.
func (k Key) Open(purpose string, sealed []byte) ([]byte, error) {
	text, err := k.sealer(purpose).Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, errors.New("it was encrypted with another key, or changed")
	}
	return text, nil
}

func (k Key) sealer(purpose string) cipher.AEAD {
	block, err := aes.NewCipher(Expand(k[:], "seal\x00"+purpose, 32))
	if err != nil {
		panic("secret: " + err.Error()) // the length of the key is wrong
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("secret: " + err.Error())
	}
	return aead
}
