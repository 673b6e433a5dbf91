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

// domain ends the name that every certificate is made for; no real host has it.
const domain = ".rdzv.internal"

// Certificates say nothing true about time: a job's key lives as long as the job, and a node whose
// clock is off is still a member. So all are valid from before any clock to after it, and are
// checked as of one fixed day.
var (
	notBefore = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	today     = func() time.Time { return notBefore.AddDate(1, 0, 0) }
)

// ServerTLS makes the configuration of a store: TLS 1.3, a fresh certificate signed by the job's
// authority, and only clients with a client certificate of the same authority. All is in memory.
func (k Key) ServerTLS() (*tls.Config, error) {
	cfg, pool, err := k.config(x509.ExtKeyUsageServerAuth)
	if err != nil {
		return nil, err
	}
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	cfg.ClientCAs = pool
	cfg.SessionTicketsDisabled = true
	return cfg, nil
}

// ClientTLS makes the configuration of an agent that connects to the store. It accepts only a
// server certificate of the job's authority.
func (k Key) ClientTLS() (*tls.Config, error) {
	cfg, pool, err := k.config(x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, err
	}
	cfg.RootCAs = pool
	cfg.ServerName = k.serverName()
	return cfg, nil
}

func (k Key) serverName() string { return k.Public() + domain }

func (k Key) config(use x509.ExtKeyUsage) (*tls.Config, *x509.CertPool, error) {
	ca, sign, err := k.authority()
	if err != nil {
		return nil, nil, err
	}
	leaf, err := k.leaf(ca, sign, use)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return &tls.Config{
		MinVersion:       tls.VersionTLS13,
		CurvePreferences: []tls.CurveID{tls.CurveP256}, // the fastest here, and one packet each way; thousands may come at once
		NextProtos:       []string{"h2"},
		Certificates:     []tls.Certificate{leaf},
		Time:             today,
	}, pool, nil
}

// authority makes the job's certificate authority, whose private key depends on the job's key
// alone.
//
// P-256, whose tables are in the program: those of Ed25519 are made anew by each process, for 1.5
// ms of its start.
func (k Key) authority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	sign, err := k.signer()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a certificate authority: %w", err)
	}
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "rdzv job " + k.Public()},
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	ca, err = issue(ca, ca, sign, sign)
	return ca, sign, err
}

// signer derives a private key of P-256. One in 2^32 strings of 32 bytes is none, as it is larger
// than the group's order.
func (k Key) signer() (*ecdsa.PrivateKey, error) {
	const size = 32
	for _, b := range [][]byte{Expand(k[:], "certificate authority", size), Expand(k[:], "certificate authority 2", size)} {
		if sign, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), b); err == nil {
			return sign, nil
		}
	}
	return nil, errors.New("the key yields no private key")
}

// leaf makes this process's own certificate, for one of the two uses, so that a client cannot pose
// as the store with it.
func (k Key) leaf(ca *x509.Certificate, sign *ecdsa.PrivateKey, use x509.ExtKeyUsage) (tls.Certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot make a certificate: %w", err)
	}
	leaf := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "rdzv agent"},
		DNSNames:    []string{k.serverName()},
		NotBefore:   notBefore,
		NotAfter:    notAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{use},
	}
	cert, err := issue(leaf, ca, private, sign)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: private, Leaf: cert}, nil
}

// issue makes a certificate of the key of holder, signed by ca. Where cert has no serial number it
// gets one at random.
func issue(cert, ca *x509.Certificate, holder, sign *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, holder.Public(), sign)
	if err != nil {
		return nil, fmt.Errorf("cannot make a certificate: %w", err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot make a certificate: %w", err)
	}
	return made, nil
}

// PublicOf is the public name of the job that a server name is of, "" if it is none of ours.
func PublicOf(serverName string) string {
	public, ok := strings.CutSuffix(serverName, domain)
	if !ok {
		return ""
	}
	return public
}
