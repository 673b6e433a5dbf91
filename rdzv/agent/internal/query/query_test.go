package query

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"golang.org/x/sys/unix"

	"rdzv/internal/proctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout is how long a test waits for an event that must happen.
const testTimeout = 30 * time.Second

// fake is an agent of a job, which answers on behalf of members.
type fake struct {
	job     Job
	members []string
	asked   atomic.Int32
	answer  func(context.Context, Request) ([]byte, error)
	hangs   chan struct{} // Job waits until it is closed, if it is not nil
	server  *Server       // of listen
}

func (f *fake) Job() Job {
	if f.hangs != nil {
		<-f.hangs
	}
	return f.job
}

func (f *fake) Answer(ctx context.Context, r Request) ([]byte, []string, error) {
	f.asked.Add(1)
	if f.answer == nil {
		return strconv.AppendQuote(nil, f.job.ID+": "+r.Kind+" "+r.Arg), f.members, nil
	}
	value, err := f.answer(ctx, r)
	return value, f.members, err
}

// listen starts the servers of agents and returns a /proc with only these.
func listen(t *testing.T, uid int, agents ...*fake) fstest.MapFS {
	t.Helper()
	text := "Num       RefCount Protocol Flags    Type St Inode Path\n"
	for _, a := range agents {
		s, err := Listen(a, uid)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		a.server = s
		text += "0: 00000002 00000000 00010000 0001 01 21 " + s.listener.Addr().String() + "\n"
	}
	return fstest.MapFS{"self/net/unix": {Data: []byte(text)}}
}

func askJobs(t *testing.T, proc fstest.MapFS, uid int, name string) Found {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	found, err := AskJobs(ctx, proc, uid, name, Request{"kind", "arg"})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// texts are the replies in short.
func texts(found Found) (list []string) {
	for _, r := range found.Jobs {
		text := r.Job + " " + strings.Trim(string(r.Value), `"`)
		if r.Err != nil {
			text += r.Err.Error()
		}
		list = append(list, text)
	}
	return list
}

// One agent of each job is asked, also if two jobs have the same name, and every agent that has not
// joined yet.
func TestOneAgentOfEachJobIsAsked(t *testing.T) {
	agent := func(job, id string, members ...string) *fake {
		return &fake{job: Job{Name: job, ID: id}, members: members}
	}
	agents := []*fake{
		agent("b", "1", "1", "2", "3"), agent("b", "2", "1", "2", "3"), agent("b", "4", "4"),
		agent("a", ""), agent("a", ""), agent("b", "3", "1", "2", "3"),
	}
	proc := listen(t, os.Geteuid(), agents...)
	found := askJobs(t, proc, os.Geteuid(), "")
	got := texts(found)
	if len(got) != 4 || got[0] != "a : kind arg" || got[1] != "a : kind arg" ||
		!slices.ContainsFunc(got, func(s string) bool { return s == "b 4: kind arg" }) ||
		found.Silent != nil || found.Others != nil {
		t.Errorf("%q, %+v", got, found)
	}
	asked := agents[0].asked.Load() + agents[1].asked.Load() + agents[5].asked.Load()
	if asked != 1 {
		t.Errorf("%d of the first job's agents were asked", asked)
	}
	found = askJobs(t, proc, os.Geteuid(), "c")
	if want := []string{"a", "b"}; found.Jobs != nil || !slices.Equal(found.Names, want) {
		t.Errorf("jobs named c: %q; all are %q, want %q", texts(found), found.Names, want)
	}
}

// If an agent cannot answer for its job, the next one does.
func TestNextAgentIsAsked(t *testing.T) {
	failing := func(context.Context, Request) ([]byte, error) { return nil, errors.New("no idea") }
	bad := &fake{job: Job{Name: "a", ID: "1"}, members: []string{"1", "2"}, answer: failing}
	good := &fake{job: Job{Name: "a", ID: "2"}, members: []string{"1", "2"}}
	worse := &fake{job: Job{Name: "b", ID: "3"}, answer: failing}
	got := texts(askJobs(t, listen(t, os.Geteuid(), bad, good, worse), os.Geteuid(), ""))
	if want := []string{"a 2: kind arg", "b no idea"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An agent that ends while it is asked has no answer, not one that failed, and its job is none of
// those that run. An answer that is complete is sent: it may be why the agent ends.
func TestAgentEndsMeanwhile(t *testing.T) {
	for _, c := range []struct {
		value string
		err   error
		want  []string
	}{
		{"", errors.New("no store any more"), nil},
		{`"ends"`, nil, []string{"a ends"}},
	} {
		ends := make(chan struct{})
		ending := &fake{job: Job{Name: "a", ID: "1"}}
		ending.answer = func(ctx context.Context, _ Request) ([]byte, error) {
			close(ends)
			<-ctx.Done()
			return []byte(c.value), c.err
		}
		proc := listen(t, os.Geteuid(), ending)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			<-ends
			ending.server.Close()
		}()
		found := askJobs(t, proc, os.Geteuid(), "")
		<-closed
		if got := texts(found); !slices.Equal(got, c.want) || len(found.Names) != len(c.want) {
			t.Errorf("got %q of jobs %q, want %q", got, found.Names, c.want)
		}
	}
}

// An agent that does not respond is named, and the others answer.
func TestSilentAgent(t *testing.T) {
	hanging := &fake{hangs: make(chan struct{})}
	proc := listen(t, os.Geteuid(), &fake{job: Job{Name: "a", ID: "1"}}, hanging)
	found := askJobs(t, proc, os.Geteuid(), "")
	close(hanging.hangs)
	if got := texts(found); !slices.Equal(got, []string{"a 1: kind arg"}) ||
		!slices.Equal(found.Silent, []int{os.Getpid()}) {
		t.Errorf("%q, silent %v; this process is %d", got, found.Silent, os.Getpid())
	}
}

// Neither end talks to another user's process. Each verifies the other, because anybody can connect
// to an abstract address, and listen at one.
func TestOtherUser(t *testing.T) {
	own, other := os.Geteuid(), os.Geteuid()+1
	a := &fake{job: Job{Name: "a", ID: "1"}}
	found := askJobs(t, listen(t, own, a), other, "")
	if found.Jobs != nil || !slices.Equal(found.Others, []int{own}) {
		t.Errorf("the user of the agent was not verified: %+v", found)
	}
	s, err := Listen(a, other)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := askAs(s.listener.Addr().String(), other+1)
	if e.err == nil || a.asked.Load() != 0 {
		t.Errorf("the agent did not verify the user: %+v, asked %d times", e, a.asked.Load())
	}
}

// askAs asks an agent as another user does, if this process is root's. The kernel takes the user of
// the thread that connects.
func askAs(addr string, uid int) exchange {
	asked := make(chan exchange)
	go func() {
		runtime.LockOSThread() // it ends with this goroutine
		if os.Geteuid() == 0 {
			unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0))
		}
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		asked <- ask(ctx, addr, AnyUser, Request{Kind: "kind"})
	}()
	return <-asked
}

// In a user namespace in which this user has the number of all those without one, agents answer
// nobody, and nobody asks them.
func TestOverflowUser(t *testing.T) {
	if !proctest.Inside(t, "--user", "--map-user=65534") {
		return
	}
	const want = "user 65534 is the overflow user of this user namespace"
	_, errListen := Listen(&fake{}, os.Geteuid())
	_, errAsk := AskJobs(t.Context(), fstest.MapFS{
		"self/net/unix": {Data: []byte("Num RefCount Protocol Flags Type St Inode Path\n")},
	}, os.Geteuid(), "", Request{})
	for _, err := range []error{errListen, errAsk} {
		if err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// An agent of another user answers root.
func TestAnyUser(t *testing.T) {
	if os.Geteuid() != 0 && !proctest.Inside(t, "--user", "--map-root-user") {
		return
	}
	proc := listen(t, 1001, &fake{job: Job{Name: "a", ID: "1"}, members: []string{"1"}})
	for _, uid := range []int{os.Geteuid(), AnyUser} {
		found := askJobs(t, proc, uid, "")
		if got, want := len(found.Jobs), 1; got != want || found.Jobs[0].Err != nil {
			t.Errorf("user %d: %+v, want %d job", uid, found, want)
		}
	}
}

// An agent that ends while it is being looked for is no problem.
func TestAgentThatHasEnded(t *testing.T) {
	proc := listen(t, os.Geteuid())
	proc["self/net/unix"].Data = fmt.Appendf(proc["self/net/unix"].Data,
		"0: 00000002 00000000 00010000 0001 01 21 %snone\n", prefix)
	if found := askJobs(t, proc, os.Geteuid(), ""); found.Jobs != nil || found.Silent != nil {
		t.Errorf("%+v", found)
	}
	_, err := AskJobs(t.Context(), fstest.MapFS{}, 0, "", Request{})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot look for agents: ") {
		t.Errorf("without /proc/net/unix: %v", err)
	}
}

// A client that goes away ends the answer.
func TestClientGoesAway(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	a := &fake{answer: func(ctx context.Context, _ Request) ([]byte, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}}
	proc := listen(t, os.Geteuid(), a)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	found, err := AskJobs(ctx, proc, os.Geteuid(), "", Request{Kind: "kind"})
	if err != nil || len(found.Jobs) != 1 || !errors.Is(found.Jobs[0].Err, context.Canceled) {
		t.Errorf("%+v, %v", found, err)
	}
	select {
	case <-ended:
	case <-time.After(testTimeout):
		t.Error("the answer did not end")
	}
}

// Neither a client that says nothing nor an answer that takes long delays the end of an agent.
func TestClose(t *testing.T) {
	began := make(chan struct{})
	a := &fake{answer: func(ctx context.Context, _ Request) ([]byte, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	s, err := Listen(a, os.Geteuid())
	if err != nil {
		t.Fatal(err)
	}
	idle, err := net.DialUnix("unix", nil, s.listener.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	asked := make(chan exchange, 1)
	go func() { asked <- ask(t.Context(), s.listener.Addr().String(), os.Geteuid(), Request{}) }()
	<-began
	start := time.Now()
	s.Close()
	if took := time.Since(start); took > readLimit/2 {
		t.Errorf("closing took %v", took)
	}
	if e := <-asked; e.err == nil {
		t.Error("a request was answered by an agent that has ended")
	}
}

func TestBadRequests(t *testing.T) {
	a := &fake{}
	s, err := Listen(a, os.Geteuid())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, text := range []string{"{\n", "[]\n", strings.Repeat(" ", maxRequest+1), "\n\n\n"} {
		conn, err := net.DialUnix("unix", nil, s.listener.Addr().(*net.UnixAddr))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, text)
		conn.CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(testTimeout))
		if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.10q: read %d bytes, %v", text, n, err)
		}
		conn.Close()
	}
	if a.asked.Load() != 0 {
		t.Error("the agent was asked")
	}
}

// An agent pays this at each start.
func BenchmarkListen(b *testing.B) {
	for b.Loop() {
		s, err := Listen(&fake{}, os.Geteuid())
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
