package login

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"time"

	"rdzv/cmd/rdzv/internal/starter/hosts"
)

const (
	maxPending = 64 // logins at a time, of all
	maxThrough = 8  // logins at a time through one jump host: its sshd refuses more than 10
)

// limits bounds how many logins are pending at a time.
type limits struct {
	hosts   int
	pending chan struct{}
	mu      sync.Mutex
	through map[string]chan struct{} // by jump host
}

func newLimits(hosts int) *limits {
	return &limits{hosts, make(chan struct{}, maxPending), sync.Mutex{}, map[string]chan struct{}{}}
}

// enter waits until one more login to a host may be pending. The login is no longer pending when
// the function that it returns is called.
func (l *limits) enter(
	ctx context.Context, h hosts.Host, jump func(context.Context, hosts.Host) string,
) (release func()) {
	places := []chan struct{}{l.pending}
	if l.hosts > maxThrough {
		if host := jump(ctx, h); host != "" {
			places = []chan struct{}{l.jumpHost(host), l.pending}
		}
	}
	entered := 0
	for _, place := range places {
		select {
		case place <- struct{}{}:
			entered++
		case <-ctx.Done():
		}
	}
	return sync.OnceFunc(func() {
		for _, place := range places[:entered] {
			<-place
		}
	})
}

func (l *limits) jumpHost(name string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.through[name] == nil {
		l.through[name] = make(chan struct{}, maxThrough)
	}
	return l.through[name]
}

// jump is the first host that ssh's config puts between this machine and a host, or the command
// that connects to it; "" if there is none, or if the ssh program does not say.
func (s *starting) jump(ctx context.Context, h hosts.Host) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	args := append(s.SSH[1:len(s.SSH):len(s.SSH)], "-G", h.String())
	asked := exec.CommandContext(ctx, s.SSH[0], args...)
	asked.Env = s.Environ
	asked.WaitDelay = time.Second
	config, err := asked.Output()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(config)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if (key == "proxyjump" || key == "proxycommand") && value != "none" {
			host, _, _ := strings.Cut(value, ",")
			return host
		}
	}
	return ""
}

// pause is how long to wait after a login was refused because there are too many: longer after
// each, and not the same for all.
func pause(try int) time.Duration {
	return time.Duration(try)*500*time.Millisecond + rand.N(time.Duration(try)*time.Second)
}
