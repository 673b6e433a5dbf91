package integration

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Somebody without the token has recorded the beacons of earlier runs of a command, of which some
// came from a host that no longer answers. He sends them, and every beacon that he receives
// meanwhile, from one of the hosts while the next runs start: they start as if there were none.
func TestAttackReplayedBeacons(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 4)
	p := c.newPlace(t)
	recorded, attacked, limit := 2, 4, time.Second
	if *attackLong {
		recorded, attacked, limit = 10, 38, time.Second/2
	}
	attacker := p.on(3, self, "beacons", "10000")
	attacker.waitFor("recording")
	var alone []time.Duration
	for range recorded {
		p.timeOfRun(t, 4, 2, 3)
		alone = append(alone, p.timeOfRun(t, 1, 2, 3))
	}
	c.hosts("cut", "4")
	attacker.signal(syscall.SIGUSR1)
	attacker.waitFor("replaying")
	var during []time.Duration
	for range attacked {
		during = append(during, p.timeOfRun(t, 1, 2, 3))
	}
	attacker.signal(syscall.SIGUSR1)
	attacker.checkCode(0)
	lines, _ := attacker.output()
	t.Logf("attacker: %s", strings.Join(lines, "; "))
	slices.Sort(alone)
	checkDelay(t, "10,000 replayed beacons per second", alone[len(alone)/2], during, limit)
}

// The recorded beacons are those of a job with the same command that still runs on the hosts: its
// store is alive, but the next job has nothing to do with it.
func TestAttackBeaconsOfRunningJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	p := c.newPlace(t)
	attacker := p.on(3, self, "beacons", "10000")
	attacker.waitFor("recording")
	running := p.startOn([]string{"HOLD=1"}, 1, 2, 3)
	waitForAny(t, "3 ranks on 3 nodes", running...)
	alone := p.timeOfRun(t, 1, 2, 3)
	attacker.signal(syscall.SIGUSR1)
	attacker.waitFor("replaying")
	var during []time.Duration
	for range 3 {
		during = append(during, p.timeOfRun(t, 1, 2, 3))
	}
	attacker.signal(syscall.SIGUSR1)
	attacker.checkCode(0)
	running[0].interrupt()
	checkCodes(130, running...)
	checkDelay(t, "replayed beacons of a job that still runs", alone, during, time.Second)
}

// checkDelay checks the longest delay during an attack, in the short form the median, and logs the
// row of the table.
func checkDelay(
	t *testing.T, attack string, alone time.Duration, during []time.Duration, limit time.Duration,
) {
	t.Helper()
	succeeded := 0
	for _, took := range during {
		if took < failedRun {
			succeeded++
		}
	}
	slices.Sort(during)
	t.Logf("alone %v, during the attack %v", alone, during)
	delayed := during[len(during)-1]
	if !*attackLong { // other tests delay single starts by more
		delayed = during[len(during)/2]
	}
	delay := max(0, delayed-alone)
	attackRow(t, attack, 3, delay, fmt.Sprintf("%d of %d jobs succeeded", succeeded, len(during)))
	if succeeded < len(during) {
		t.Errorf("%d of %d jobs succeeded", succeeded, len(during))
	}
	if delay > limit {
		t.Errorf("a start was delayed by %v, want at most %v", delay, limit)
	}
}

// failedRun is the time of a run that fails, and the join timeout of its agents.
const failedRun = 20 * time.Second

// timeOfRun runs the same command on the hosts and returns how long that took.
func (p *clusterPlace) timeOfRun(t *testing.T, hosts ...int) time.Duration {
	t.Helper()
	start := time.Now()
	failed := 0
	for _, agent := range p.startOn(nil, hosts...) {
		failed += agent.code()
	}
	if failed > 0 {
		return failedRun
	}
	return time.Since(start)
}

// startOn starts the same command on the hosts, each with its own temporary directory. With HOLD in
// the environment its workers do not end.
func (p *clusterPlace) startOn(env []string, hosts ...int) (agents []*process) {
	p.t.Helper()
	flags := []string{"--nodes", "3", "--join-timeout", failedRun.String()}
	line := rdzvExec(flags, []string{"sh", "-c", `test -z "$HOLD" || exec sleep 1000`})
	for _, host := range hosts {
		own := append(slices.Clone(env), "TMPDIR="+p.dir(fmt.Sprint("tmp", host)))
		agents = append(agents, p.startWith(own, p.cluster.on(host, line...)...))
	}
	return agents
}

// runBeacons records multicast beacons, and sends them at a rate per second from the first SIGUSR1
// to the second:
//
//	beacons RATE
func runBeacons(args []string) int {
	rate, err := strconv.Atoi(args[0])
	if err != nil {
		return reportError(err)
	}
	group := &net.UDPAddr{IP: net.IPv4(239, 255, 114, 122), Port: 29600}
	eth0, err := net.InterfaceByName("eth0")
	if err != nil {
		return reportError(err)
	}
	conn, err := net.ListenMulticastUDP("udp4", eth0, group)
	if err != nil {
		return reportError(err)
	}
	begin := make(chan os.Signal, 1)
	signal.Notify(begin, syscall.SIGUSR1)
	r := &recording{known: map[string]bool{}}
	go r.record(conn)
	fmt.Println("recording")
	<-begin
	fmt.Println("replaying")
	out, err := net.DialUDP("udp4", nil, group)
	if err != nil {
		return reportError(err)
	}
	const tick = time.Millisecond
	next, sent := time.NewTicker(tick), 0
	for start := time.Now(); ; {
		packets := r.all()
		for ; sent < int(time.Since(start)/tick)*rate/1000; sent++ {
			_, _ = out.Write(packets[sent%len(packets)])
		}
		select {
		case <-next.C:
		case <-begin:
			rate := float64(sent) / time.Since(start).Seconds()
			fmt.Printf("%d packets sent, %.0f per second, %d different\n", sent, rate, len(packets))
			return 0
		}
	}
}

// A recording contains each packet once.
type recording struct {
	mu      sync.Mutex
	known   map[string]bool
	packets [][]byte
}

func (r *recording) record(conn *net.UDPConn) {
	for buf := make([]byte, 2000); ; {
		n, err := conn.Read(buf)
		if err != nil {
			panic(err)
		}
		r.mu.Lock()
		if packet := string(buf[:n]); !r.known[packet] {
			r.known[packet] = true
			r.packets = append(r.packets, []byte(packet))
		}
		r.mu.Unlock()
	}
}

func (r *recording) all() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.packets
}
