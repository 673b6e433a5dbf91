package integration

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"rdzv/rdzv/secret"
)

// tokenAttacks are attacks by somebody who has the token of the user but not the key of the job, or
// only what an agent with the key has sent. See runAttack.
var tokenAttacks = map[string]func(addr string) string{
	"otherjob": joinWithOtherKey,
	"replay":   replayHandshake,
}

// A member of another job with the same token, and somebody who sends again what a member has sent,
// get nothing from the store while its job starts.
func TestAttackOtherJobAndReplay(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	for kind, attack := range map[string]string{
		"otherjob": "a member of another job with the same token",
		"replay":   "replayed handshakes of a member",
	} {
		t.Run(kind, func(t *testing.T) {
			alone := runBesideTokenAttack(t, c, "")
			delay := max(0, runBesideTokenAttack(t, c, kind)-alone)
			attackRow(t, attack, 2, delay, "got nothing; the job succeeded")
			if limit := 5 * time.Second; delay > limit {
				t.Errorf("the second agent was delayed by %v, want at most %v", delay, limit)
			}
		})
	}
}

// runBesideTokenAttack runs a job on hosts 1 and 2 while host 3 attacks it, and returns the time
// from the start of the second agent until both workers ran.
func runBesideTokenAttack(t *testing.T, c *cluster, kind string) time.Duration {
	t.Helper()
	p := c.newPlace(t)
	const port = "29888"
	env := []string{"RDZV_TOKEN=" + oneToken}
	line := rdzvExec([]string{"-v", "--nodes", "2", "--store", "node1", "--join-timeout", "30s",
		"--port-range", port + "-" + port, "--job", attackedJob}, worker("record", p.dir("job")))
	first := p.startWith(env, c.on(1, line...)...)
	first.waitFor("hosting the store at")
	if kind != "" {
		attacker := p.on(3, self, "attack", kind, "10.77.0.11:"+port)
		defer func() {
			kill(attacker.pid())
			<-attacker.done
			lines, _ := attacker.output()
			t.Logf("attacker: %q", lines)
			if succeeded := attacker.linesWith(success); len(succeeded) > 0 {
				t.Errorf("the attack succeeded: %q", succeeded)
			}
		}()
		attacker.waitFor("round 1:")
		if got := attacker.linesWith(refused[kind]); len(got) == 0 {
			lines, _ := attacker.output()
			t.Errorf("the attack had the result %q, want %q", lines, refused[kind])
		}
	}
	second := p.startWith(env, c.on(2, line...)...)
	records(t, p.dir("job"), 2)
	took := time.Since(second.started)
	checkCodes(0, first, second)
	return took
}

// refused are the results of attacks that the store refuses, and not the network.
var refused = map[string]string{
	"otherjob": "after the handshake: unknown certificate authority",
	"replay":   closed,
}

// joinWithOtherKey makes TLS connections with a certificate of another job, to which it belongs
// according to its first message, and then as if it belonged to this one.
func joinWithOtherKey(addr string) string {
	key := secret.DeriveKey([]byte(oneToken), "another job")
	own, err := key.ClientTLS()
	if err != nil {
		return err.Error()
	}
	certificate := own.Certificates[0]
	// Without this function the client would not send a certificate that the store will not accept.
	own.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &certificate, nil
	}
	own.InsecureSkipVerify = true
	pretending := own.Clone()
	pretending.ServerName = forgedCertificate(addr).ServerName
	results := make(chan string, 2)
	results <- tlsHandshake(addr, own)
	results <- tlsHandshake(addr, pretending)
	close(results)
	return mostFrequent(results)
}

// replayHandshake makes a connection to the store as an agent does, and sends the same bytes again.
func replayHandshake(addr string) string {
	sent, err := recordHandshake(addr)
	if err != nil {
		return errorKind(err)
	}
	conn, err := net.DialTimeout("tcp", addr, answerTimeout)
	if err != nil {
		return errorKind(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(answerTimeout))
	_, _ = conn.Write(sent)
	if _, err = io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		return success + "the connection is open"
	}
	return closed
}

// recordHandshake returns what an agent sends until the store admits it.
func recordHandshake(addr string) ([]byte, error) {
	store, err := meetAttacked(addr)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	cfg, err := store.Key.ClientTLS()
	if err != nil {
		return nil, err
	}
	cfg.NextProtos = append(cfg.NextProtos, fmt.Sprint("rdzv-version/rdzv", protocolVersion))
	raw, err := net.DialTimeout("tcp", addr, answerTimeout)
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(answerTimeout))
	recorded := &recordedConn{Conn: raw}
	greeting := make([]byte, 64)
	n, err := tls.Client(recorded, cfg).Read(greeting)
	if err == nil && !bytes.Contains(greeting[:n], []byte(" ok ")) {
		err = fmt.Errorf("the store has sent %q", greeting[:n])
	}
	return recorded.sent, err
}

// A recordedConn is a connection that keeps what is sent on it.
type recordedConn struct {
	net.Conn
	sent []byte
}

func (r *recordedConn) Write(b []byte) (int, error) {
	r.sent = slices.Concat(r.sent, b)
	return r.Conn.Write(b)
}
