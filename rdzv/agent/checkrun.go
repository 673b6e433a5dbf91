package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/peers"
	"rdzv/rdzv/secret"
)

// checked is what an agent that checks has found out before the agents meet.
type checked struct {
	facts    []rdzv.NodeFact
	problems []rdzv.Problem // besides those of Local
}

// checks finds out what a check is to tell of this node. ctx ends what takes long. What runs
// programs is done by one agent of each node.
func (l *Local) checks(ctx context.Context) (found checked) {
	c := l.Config.Check
	if c == nil {
		return found
	}
	found.facts = l.checkedFacts(ctx)
	_, hung := errors.AsType[*unresponsiveError](l.noDir)
	if hung || !l.FirstOfNode() {
		return found
	}
	if c.Deep {
		found.add("import torch")(runLimited(
			ctx, c.Limit, "import torch", l.Config.Environ, l.interpreter(), "-c", importTorch))
	}
	if c.Health != "" {
		found.add(healthCommand)(runHealth(ctx, c.Limit, c.Health, l.Config.Environ))
	}
	return found
}

// importTorch tells which torch is imported, and whether it can use GPUs.
const importTorch = `import torch
n = torch.cuda.device_count()
print(torch.__version__ + ",", n, "GPUs" if torch.cuda.is_available() else "usable GPUs")`

// interpreter is the python of the program, by default that of PATH.
func (l *Local) interpreter() string {
	switch {
	case l.program.Python != "":
		return l.program.Python
	case strings.HasPrefix(filepath.Base(l.Path), "python"): // a script that runs one, as of pyenv
		return l.Path
	}
	return "python3"
}

// add returns what adds the result of a command as a fact: its last line, or that it failed.
func (found *checked) add(name string) func(line string, err error) {
	return func(line string, err error) {
		fact := rdzv.NodeFact{Name: name, Value: line}
		switch {
		case err != nil:
			fact.Value = "failed"
			found.problems = append(found.problems, rdzv.Problem{
				Kind: rdzv.OtherProblem, Text: err.Error(),
			})
		case line == "":
			fact.Value = "succeeded"
		}
		found.facts = append(found.facts, fact)
	}
}

// answer answers agents of other nodes that measure their connections to this one, until
// stopAnswering. It returns the address and port; "" if this agent does not answer.
func (m *membership) answer(id string) string {
	m.stopAnswering() // at the address on the way to another store
	l := m.local
	if l.Config.Check == nil || m.conn.alone() || l.layout().OnOneHost() || !l.FirstOfNode() {
		return ""
	}
	addr := m.address()
	if m.conn.hosting() && len(m.conn.meeting.Addrs) > 1 {
		addr = "" // any: nodes reach the store at different addresses
	}
	server, err := peers.Listen(addr, id, m.peerKey(), time.Now)
	if err != nil {
		m.events.diagnose(Warning, fmt.Errorf("cannot answer other nodes: %w", err))
		return ""
	}
	m.answers = server
	return server.Addr()
}

func (m *membership) stopAnswering() {
	if m.answers != nil {
		m.answers.Close()
		m.answers = nil
	}
}

// peerKey is the job's key, or one that everybody knows with --insecure.
func (m *membership) peerKey() (key secret.Key) {
	if job := m.conn.key(); job != nil {
		key = *job
	}
	return key
}

// links measures the connections to the nodes that the leader has chosen, unless the job ends.
func (m *membership) links() []rdzv.Link {
	client := peers.NewClient(m.peerKey(), time.Now)
	links := make([]rdzv.Link, len(m.world.Peers))
	var wg sync.WaitGroup
	for i, to := range m.world.Peers {
		wg.Go(func() {
			measured, err := client.Measure(m.session.Context(), to.Addr, to.ID)
			links[i] = rdzv.Link{
				To: to.ID, Addr: to.Addr, RoundTrip: measured.RoundTrip, Offset: measured.Offset,
			}
			if err != nil {
				links[i].Error = err.Error()
			}
		})
	}
	wg.Wait()
	if m.session.Context().Err() != nil {
		return nil
	}
	return links
}
