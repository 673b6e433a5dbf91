package secret

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// domain is the suffix of the server names in certificates. No real host has such a name.
const domain = ".rdzv.internal"

// All certificates have the same validity period, and are verified as of the same date, so that a
// node whose clock is wrong can take part. A job key exists only as long as its job, so
// certificates need not expire.
var (
	notBefore = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	verifyAt  = func() time.Time { return notBefore.AddDate(1, 0, 0) }
)

// ServerTLS returns the TLS configuration of the store: TLS 1.3 only, a new certificate signed by
// the job's authority, and client certificates of the same authority required. Nothing is stored in
// files. The certificate contains label, which clients can rely on: only printable ASCII.
func (k Key) ServerTLS(label string) (*tls.Config, error) {
	return k.config(x509.ExtKeyUsageServerAuth, label)
}

// LabelOf returns the label in a server's certificate.
func LabelOf(cert *x509.Certificate) string { return cert.Subject.SerialNumber }

// ClientTLS returns the TLS configuration of an agent that connects to the store. It accepts only a
// server certificate signed by the job's authority.
func (k Key) ClientTLS() (*tls.Config, error) { return k.config(x509.ExtKeyUsageClientAuth, "") }

// config returns the configuration of a process with a certificate for one of the two uses. The
// other settings are the same for both: each side ignores those of the other.
func (k Key) config(use x509.ExtKeyUsage, label string) (*tls.Config, error) {
	ca, signer, err := k.authority()
	if err != nil {
		return nil, err
	}
	leaf, err := k.leaf(ca, signer, use, label)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		CurvePreferences:       []tls.CurveID{tls.CurveP256}, // cheapest handshake of Go's curves
		NextProtos:             []string{"h2"},
		Certificates:           []tls.Certificate{leaf},
		Time:                   verifyAt,
		RootCAs:                pool,
		ServerName:             k.serverName(),
		ClientCAs:              pool,
		ClientAuth:             tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true,
	}, nil
}

func (k Key) serverName() string { return k.Public() + domain }

// authority returns the job's certificate authority. Its private key is derived from the job key
// only.
//
// It uses P-256, for which Go has precomputed tables. Ed25519 would cost each process 1.5 ms to
// compute its tables.
func (k Key) authority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	signer, err := k.deriveSigner()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot create a certificate authority: %w", err)
	}
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "rdzv job " + k.Public()},
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	ca, err = issue(ca, ca, signer, signer)
	return ca, signer, err
}

// deriveSigner derives a P-256 private key. One in 2^32 strings of 32 bytes is not a valid private
// key, because it is larger than the order of the group; the second one is for that case.
func (k Key) deriveSigner() (*ecdsa.PrivateKey, error) {
	for _, purpose := range []string{"certificate authority", "certificate authority 2"} {
		raw := Expand(k[:], purpose, 32)
		if signer, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw); err == nil {
			return signer, nil
		}
	}
	return nil, errors.New("no valid private key can be derived from the job key")
}

// leaf creates this process's certificate, for one of the two uses: a client must not be able to
// act as the store.
func (k Key) leaf(
	ca *x509.Certificate, signer *ecdsa.PrivateKey, use x509.ExtKeyUsage, label string,
) (tls.Certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot create a certificate: %w", err)
	}
	leaf := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "rdzv agent", SerialNumber: label},
		DNSNames:    []string{k.serverName()},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{use},
	}
	cert, err := issue(leaf, ca, private, signer)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: private, Leaf: cert}, nil
}

// issue creates a certificate for a public key, signed by ca with signer. A serial number of nil is
// replaced by a random one.
func issue(cert, ca *x509.Certificate, key, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	cert.NotBefore, cert.NotAfter = notBefore, notAfter
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, key.Public(), signer)
	if err == nil {
		cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create a certificate: %w", err)
	}
	return cert, nil
}

// PublicOf returns the public name of the job to which a server name in a certificate belongs; ""
// if the name is not one of rdzv's.
func PublicOf(serverName string) string {
	public, ok := strings.CutSuffix(serverName, domain)
	if !ok {
		return ""
	}
	return public
}
