// Package etcd connects to an existing etcd cluster, and says why that fails.
package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"rdzv/rdzv"
)

// Cluster is an etcd cluster of version 3.4 or later. The zero value is none.
type Cluster struct {
	// URLs are those at which members serve clients, all https:// or all http://. Those of some
	// members are enough; the more, the fewer faults matter.
	URLs []string
	// CA is the file of the certificates that have signed those of the members; "" is those that this
	// host trusts. Cert and Key are the files of this client's certificate and key; "" if etcd
	// requires none.
	CA, Cert, Key string
	// User and Password are those of an etcd with authentication; "" if it has none, or takes the user
	// from the certificate.
	User, Password string
	// Prefix is that of all keys, with a slash at its end; "" is rdzv.DefaultPrefix. See
	// rdzv.CheckName.
	Prefix string
}

const defaultPort = "2379"

// IsURL tells whether a text names members of a cluster, and not the host of a store.
func IsURL(text string) bool { return strings.Contains(text, "://") }

// ParseURLs reads URLs that are separated by commas, and adds the port to those without. One that
// cannot be read is as it is: Cluster.Check says why.
func ParseURLs(text string) (urls []string) {
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		if parsed, err := parseURL(one); err == nil {
			one = parsed.String()
		}
		urls = append(urls, one)
	}
	return urls
}

// parseURL reads one URL and adds the port if there is none.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	shown := text
	if _, after, secret := strings.Cut(text, "@"); secret {
		shown = "...@" + after
	}
	switch {
	case err == nil && u.User != nil:
		return nil, fmt.Errorf("cannot use the etcd URL %q: must not contain a user", shown)
	case err != nil, u.Hostname() == "", u.Scheme != "http" && u.Scheme != "https",
		u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("cannot use the etcd URL %q: must be https://HOST:PORT or "+
			"http://HOST:PORT", shown)
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	return &url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(u.Hostname(), port)}, nil
}

// Given tells whether there is a cluster.
func (c Cluster) Given() bool { return len(c.URLs) > 0 }

// Protected tells whether connections are encrypted.
func (c Cluster) Protected() bool { return c.Given() && strings.HasPrefix(c.URLs[0], "https:") }

// String names the members; it has no password.
func (c Cluster) String() string { return strings.Join(c.URLs, ", ") }

// GoString is String: no format has the password.
func (c Cluster) GoString() string { return c.String() }

// Check rejects what no cluster accepts. An error has no password.
func (c Cluster) Check() error {
	if !c.Given() {
		return nil
	}
	for _, text := range c.URLs {
		u, err := parseURL(text)
		if err != nil {
			return err
		}
		if (u.Scheme == "https") != c.Protected() {
			return fmt.Errorf("cannot use the etcd URLs %v: all must be https:// or all http://", c)
		}
	}
	switch {
	case (c.Cert == "") != (c.Key == ""):
		return errors.New("cannot use a client certificate for etcd: it needs both its file and that " +
			"of its key")
	case c.User != "" && c.Password == "":
		return fmt.Errorf("cannot use the etcd user %q without a password", c.User)
	case c.Prefix != "" && !strings.HasSuffix(c.Prefix, "/"):
		return fmt.Errorf("cannot use the prefix %q of keys: must end with a slash", c.Prefix)
	}
	if err := rdzv.CheckName(c.Prefix); err != nil {
		return fmt.Errorf("cannot use the prefix %q of keys: %w", c.Prefix, err)
	}
	return nil
}

// tls is the configuration of connections, nil if they are not encrypted.
func (c Cluster) tls() (*tls.Config, error) {
	if !c.Protected() {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("cannot read the CA certificates of etcd: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cannot read the CA certificates of etcd: none in %q", c.CA)
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("cannot read the client certificate for etcd, %q and %q: %w",
				c.Cert, c.Key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
