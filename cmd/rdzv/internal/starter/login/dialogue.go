package login

import (
	"bufio"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"rdzv/internal/shell"
)

//go:embed bootstrap.sh
var bootstrap string

// newMark is a mark for one login, which neither login files nor forced commands print.
func newMark() string { return "rdzv-" + strings.ToLower(rand.Text()[:16]) }

// remoteLine is the command that ssh runs. The login shell may be any: so there is no quote,
// exclamation mark, backslash or newline inside the quotes. rbash permits neither exec nor a slash.
// read takes no more than a line, while a shell whose script is stdin reads ahead.
func remoteLine(mark string) string {
	return `sh -c 'echo; echo ` + mark + `; read -r l; eval "$l"'`
}

// greet waits for the mark: login files read nothing of what is sent from now on.
func (s *Session) greet(ctx context.Context) *Failure {
	defer s.interrupt(ctx)()
	s.expect(ctx, s.all.Silence-time.Since(s.began))
	var printed []byte
	for {
		line, err := s.lines.ReadSlice('\n')
		if strings.TrimSpace(string(line)) == s.mark {
			return nil
		}
		printed = keep(printed, line, keptWords)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return s.notGreeted(err, strings.TrimSpace(string(printed)))
		}
	}
}

// bring sends bootstrap.sh, and the binary if the host asks for it. Then the host waits for run.
func (s *Session) bring(ctx context.Context) *Failure {
	defer s.interrupt(ctx)()
	done := func() {}
	defer func() { done() }()
	script, err := s.script()
	if err == nil {
		err = s.send(ctx, script)
	}
	for err == nil {
		var word, rest string
		if word, rest, err = s.answer(ctx); err != nil {
			break
		}
		switch word {
		case "here":
			if failure := s.identify(rest); failure != nil {
				return failure
			}
		case "missing":
			done()
			done = s.all.first.wait(ctx)
			err = s.send(ctx, []byte("look\n"))
		case "send":
			err = s.sendBinary(ctx)
		case "ready":
			s.Path = rest
			return nil
		case "failed":
			return s.failure("there is no place for rdzv: "+rest,
				"rdzv needs a directory that it can write to, and run programs from: ~/.cache, "+
					"$XDG_RUNTIME_DIR or /tmp")
		default:
			err = fmt.Errorf("unknown answer %q", word)
		}
	}
	return s.broken(err)
}

// run lets the host become rdzv.
func (s *Session) run(ctx context.Context) *Failure {
	defer s.interrupt(ctx)()
	s.words.passOn(s.passOn)
	err := s.send(ctx, []byte("run\n"))
	word := ""
	if err == nil {
		if word, _, err = s.answer(ctx); err == nil && word != "runs" {
			err = fmt.Errorf("unknown answer %q", word)
		}
	}
	if err != nil {
		return s.broken(err)
	}
	s.stdin.SetWriteDeadline(time.Time{})
	s.stdout.SetReadDeadline(time.Time{})
	return nil
}

// passOn gives a line that ssh or the remote rdzv has written to the caller of All.
func (s *Session) passOn(line []byte) {
	if s.all.Say == nil {
		return
	}
	s.all.saying.Lock()
	defer s.all.saying.Unlock()
	s.all.Say(s.Host.Name + ": " + strings.TrimRight(string(line), "\n"))
}

// buildLength is how much of its hash names a copy of the binary.
const buildLength = 16

// script is the first line for the host, and bootstrap.sh, which it reads and evaluates.
func (s *Session) script() ([]byte, error) {
	b := s.all.binary
	sum, err := b.sum()
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("mark=%s build=%s bytes=%d sum=%s room=%d\n%sexec \"$at\" %s\n",
		s.mark, sum[:buildLength], b.size, sum, b.size/1024+64, bootstrap, shell.Line(s.all.Command...))
	return fmt.Appendf(nil, "eval \"$(head -c %d)\"\n%s", len(text), text), nil
}

// sendBinary sends the size of the compressed binary, and exactly as many bytes.
func (s *Session) sendBinary(ctx context.Context) error {
	packed, err := s.all.binary.packed()
	if err == nil {
		err = s.send(ctx, fmt.Appendf(nil, "%d\n", len(packed)))
	}
	for piece := 64 << 10; err == nil && len(packed) > 0; packed = packed[piece:] {
		piece = min(piece, len(packed))
		err = s.send(ctx, packed[:piece])
	}
	return err
}

// identify notes which machine the host is, and refuses one that cannot run this build.
func (s *Session) identify(reported string) *Failure {
	system, rest, _ := strings.Cut(reported, " ")
	arch, identity, _ := strings.Cut(rest, " ")
	s.machine = machine(identity)
	if fits(system, arch) {
		return nil
	}
	nodes := len(s.all.hosts)
	if s.all.Here != "" {
		nodes++
	}
	return s.failure(
		fmt.Sprintf("it is a %s system (%s), and this rdzv is for Linux (%s)",
			system, arch, architecture()),
		fmt.Sprintf("install rdzv for %s there, and start the job on each host: "+
			"rdzv exec --nodes %d --store %s -- ...", arch, nodes, s.all.hosts[0].Name))
}

// answer is the next line of bootstrap.sh. What processes of login files print is not for us.
func (s *Session) answer(ctx context.Context) (word, rest string, err error) {
	s.expect(ctx, s.all.Silence)
	for {
		line, err := s.lines.ReadSlice('\n')
		if _, said, ok := strings.Cut(string(line), s.mark+" "); ok && err == nil {
			word, rest, _ = strings.Cut(strings.TrimSpace(said), " ")
			return word, rest, nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return "", "", err
		}
	}
}

func (s *Session) send(ctx context.Context, data []byte) error {
	s.expect(ctx, s.all.Silence)
	_, err := s.stdin.Write(data)
	return err
}

// expect limits how long the next reads and writes take.
func (s *Session) expect(ctx context.Context, limit time.Duration) {
	s.stdin.SetWriteDeadline(time.Now().Add(limit))
	s.stdout.SetReadDeadline(time.Now().Add(limit))
	if ctx.Err() != nil { // interrupt may have been before
		s.stopWaiting()
	}
}

// interrupt ends reads and writes when ctx is done, until the function that it returns is called.
func (s *Session) interrupt(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, s.stopWaiting)
}

func (s *Session) stopWaiting() {
	s.stdin.SetWriteDeadline(time.Unix(1, 0))
	s.stdout.SetReadDeadline(time.Unix(1, 0))
}

// silent tells whether an error of a read or write is that nothing happened for too long.
func silent(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
