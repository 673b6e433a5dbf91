package secret

import (
	"crypto/tls"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

func TestAuthorityDependsOnlyOnTheKey(t *testing.T) {
	k := DeriveKey(testToken, "job")
	_, a, err := k.authority()
	if err != nil {
		t.Fatal(err)
	}
	_, b, err := k.authority()
	if err != nil {
		t.Fatal(err)
	}
	if !a.Equal(b) {
		t.Error("the same key gives two authorities")
	}
	s1, err1 := k.ServerTLS("label")
	s2, err2 := k.ServerTLS("label")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if s1.Certificates[0].Leaf.Equal(s2.Certificates[0].Leaf) {
		t.Error("two stores have the same certificate")
	}
}

// The clock of a node may be wrong. That of the bubble shows a time before the certificates'
// validity.
func TestCertificatesNeedNoClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if now := time.Now(); !now.Before(notBefore) {
			t.Fatalf("it is %v, want a time before %v", now, notBefore)
		}
		k := DeriveKey(testToken, "job")
		server, err1 := k.ServerTLS("label")
		client, err2 := k.ClientTLS()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		one, two := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- tls.Server(one, server).Handshake() }()
		if err := tls.Client(two, client).Handshake(); err != nil {
			t.Errorf("the client: %v", err)
			two.Close()
		}
		if err := <-served; err != nil {
			t.Errorf("the server: %v", err)
		}
	})
}
