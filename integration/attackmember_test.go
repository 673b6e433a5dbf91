package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"rdzv/rdzv/meet"
	"rdzv/rdzv/secret"
)

const attackedJob = "attacked"

// A process with the token of the user, such as another member of the job, misuses HTTP/2 on many
// connections to the store, while the job starts and while it runs. The job starts, and the failure
// of a worker ends it.
func TestAttackMember(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	connections, limit, most := 4, 10*time.Second, 150
	if *attackLong {
		connections, limit, most = 32, 30*time.Second, 300
	}
	alone, _, _ := runBesideMember(t, c, "", 0)
	for _, kind := range []string{"reset", "streams", "headers", "pings", "unread"} {
		t.Run(kind, func(t *testing.T) {
			took, end, memory := runBesideMember(t, c, kind, connections)
			attack := fmt.Sprintf("%s on %d connections of a member", memberAttacks[kind].what,
				connections)
			delay := max(0, took-alone)
			attackRow(t, attack, 2, delay,
				fmt.Sprintf("a failure ended the job after %.2f s; store: %d MB",
					end.Seconds(), memory>>10))
			if delay > limit || end > limit {
				t.Errorf("the start took %v longer and the end took %v, want at most %v", delay,
					end, limit)
			}
			if memory>>10 > most {
				t.Errorf("the store used %d MB, want at most %d", memory>>10, most)
			}
		})
	}
}

// runBesideMember runs a job on hosts 1 and 2 until one of its workers fails, while host 3 attacks
// its store. It returns the times until both workers ran and from the failure until the end, and
// the memory of the agent that hosts the store in kB.
func runBesideMember(t *testing.T, c *cluster, kind string, connections int) (
	start, end time.Duration, memory int,
) {
	t.Helper()
	p := c.newPlace(t)
	const port = "29888"
	env := []string{"RDZV_TOKEN=" + oneToken}
	line := rdzvExec([]string{"-v", "--nodes", "2", "--store", "node1", "--join-timeout", "30s",
		"--port-range", port + "-" + port, "--job", attackedJob}, worker("session", p.dir("job")))
	first := p.startWith(env, c.on(1, line...)...)
	first.waitFor("hosting the store at")
	host := p.agents()[0]
	if kind != "" {
		attacker := p.on(3, self, "member", kind, "10.77.0.11:"+port, strconv.Itoa(connections))
		defer func() {
			kill(attacker.pid())
			<-attacker.done
			lines, _ := attacker.output()
			t.Logf("attacker: %s", strings.Join(lines, "; "))
		}()
		attacker.waitFor("attacking")
	}
	second := p.startWith(env, c.on(2, line...)...)
	workers := records(t, p.dir("job"), 2)
	start = time.Since(second.started)
	memory = peakMemory(host)
	failed := time.Now()
	if err := syscall.Kill(workers[1].PID, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	checkCodes(failCode, first, second)
	return start, time.Since(failed), memory
}

// A memberAttack writes to a connection on which HTTP/2 has begun, until that fails.
type memberAttack struct {
	what string
	read bool // it reads what the store sends
	run  func(*abuse) error
}

var memberAttacks = map[string]memberAttack{
	"reset":   {"streams that are reset at once", true, (*abuse).reset},
	"streams": {"streams without end", true, (*abuse).streams},
	"headers": {"headers without end", true, (*abuse).headers},
	"pings":   {"pings, and nothing is read,", false, (*abuse).pings},
	"unread":  {"requests whose answers are not read", false, (*abuse).unread},
}

// runMember attacks the store of a job with the job's key, on some connections, until it is killed:
//
//	member KIND ADDR:PORT CONNECTIONS
func runMember(args []string) int {
	attack, address := memberAttacks[args[0]], args[1]
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return reportError(err)
	}
	store, err := meetAttacked(address)
	if err != nil {
		return reportError(err)
	}
	defer store.Close()
	var frames atomic.Int64
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for {
				conn, err := store.Dial(context.Background())
				if err != nil {
					return // the job has ended
				}
				_ = attack.on(conn, &frames)
				conn.Close()
			}
		})
	}
	eventually(waitLimit, func() bool { return frames.Load() > 0 })
	fmt.Println("attacking")
	all.Wait()
	fmt.Println(frames.Load(), "frames")
	return 0
}

// meetAttacked finds the store of the job, as its agents do.
func meetAttacked(address string) (*meet.Meeting, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	return meet.Meet(ctx, meet.Config{
		Job: attackedJob, Store: address, Rank: -1, LocalSize: -1, Size: 2, Nodes: 2,
		Token: func() ([]byte, error) { return secret.ParseToken(oneToken) },
	}, nil)
}

// abuse is one connection of an attack.
type abuse struct {
	*http2.Framer
	frames *atomic.Int64
	stream uint32
}

func (m memberAttack) on(conn net.Conn, frames *atomic.Int64) error {
	if m.read {
		go io.Copy(io.Discard, conn)
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	a := &abuse{Framer: http2.NewFramer(conn, conn), frames: frames, stream: 1}
	if err := a.WriteSettings(); err != nil {
		return err
	}
	return m.run(a)
}

// open opens a stream for a request.
func (a *abuse) open(path string, end bool) error {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"},
		{Name: ":path", Value: path}, {Name: ":authority", Value: "store"},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
	} {
		_ = encoder.WriteField(field)
	}
	a.frames.Add(1)
	a.stream += 2
	return a.WriteHeaders(http2.HeadersFrameParam{
		StreamID: a.stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end,
	})
}

const presencePath, rangePath = "/rdzv.v1.Presence/Connect", "/etcdserverpb.KV/Range"

func (a *abuse) reset() (err error) {
	for err == nil {
		if err = a.open(presencePath, false); err == nil {
			err = a.WriteRSTStream(a.stream, http2.ErrCodeCancel)
		}
	}
	return err
}

func (a *abuse) streams() (err error) {
	for err == nil {
		err = a.open(presencePath, false)
	}
	return err
}

func (a *abuse) headers() (err error) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	value := string(bytes.Repeat([]byte("x"), 8000))
	_ = encoder.WriteField(hpack.HeaderField{Name: "x", Value: value, Sensitive: true})
	err = a.WriteHeaders(http2.HeadersFrameParam{StreamID: a.stream, BlockFragment: block.Bytes()})
	for err == nil {
		a.frames.Add(1)
		err = a.WriteContinuation(a.stream, false, block.Bytes())
	}
	return err
}

func (a *abuse) pings() (err error) {
	for err == nil {
		a.frames.Add(1)
		err = a.WritePing(false, [8]byte{})
	}
	return err
}

// unread asks for all keys of the job.
func (a *abuse) unread() (err error) {
	request := []byte("\x0a\x05/rdzv\x12\x05/rdzw")
	message := slices.Concat([]byte{0, 0, 0, 0, byte(len(request))}, request)
	for err == nil {
		if err = a.open(rangePath, false); err == nil {
			err = a.WriteData(a.stream, true, message)
		}
	}
	return err
}
